/* InTopK and InTopKV2: a row of float32 is true where fewer than k of its elements are above the target's, all are
 * finite, and the target is in range. EACH: see rows.h. TTARGETS: dtype of targets, and of k where HAS_K says that it
 * is a tensor. */
#define T int32
#include <timberframe/accelerator/rows.h>

#ifdef HAS_K
#define OPERANDS TF_GLOBAL const TF_STORAGE(TTARGETS) *targets, TF_GLOBAL const TF_STORAGE(TTARGETS) *limit
#else
#define OPERANDS TF_GLOBAL const TF_STORAGE(TTARGETS) *targets
#endif

TF_KERNEL tf_in_top_k(TF_GLOBAL const float *x, OPERANDS, TF_GLOBAL uint8_t *out, int64_t k, tf_index rows,
                      tf_index classes) {
  TF_ROW_KERNEL
#ifdef HAS_K
  k = limit[0];
#endif
  TF_EACH_LINE(row, rows) {
    const int64_t target = targets[row];
    const int32_t inside = target >= 0 && target < classes;
    const float chosen = inside ? x[row * classes + (tf_index)target] : 0;
    int32_t above = 0, odd = 0;
    TF_EACH_CLASS(c, classes) {
      const float v = x[row * classes + c];
      above += v > chosen;
      odd |= v - v != 0;
    }
    above = tf_row_sum(above);
    odd = tf_row_maximum(odd);
    if (lane == 0) out[row] = inside && !odd && above < k;
  }
}
