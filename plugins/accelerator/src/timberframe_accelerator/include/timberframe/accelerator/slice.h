/* Where a slice begins whose bounds are read at each launch. TINDEX: dtype of begin and end.
 *
 * Both kernels run as one work-item and leave the offset, in elements, in offset[0]; after an error, -1. */
#include <timberframe/accelerator/language.h>
#include <timberframe/selection.h>

/* limits: the largest begin and the stride of each dimension. Reason 1: dimension, begin, largest begin. */
TF_KERNEL tf_slice_offset(TF_GLOBAL const TF_STORAGE(TINDEX) *begin, TF_GLOBAL int64_t *offset,
                          TF_GLOBAL const int64_t *limits, int32_t rank, TF_GLOBAL int64_t *status, int64_t node) {
  int64_t sum = 0, bad = 0;
  for (int32_t d = 0; d < rank && !bad; d++) {
    const int64_t first = TF_LOAD(TINDEX, begin, d);
    if (first < 0 || first > limits[2 * d]) {
      tf_report(status, node, 1, d, first, limits[2 * d]);
      bad = 1;
    } else {
      sum += first * limits[2 * d + 1];
    }
  }
  offset[0] = bad ? -1 : sum;
}

/* selections: nine words each: position in begin and end, dimension, its size and stride, step, planned number of
 * elements, whether one index is taken, and which bounds are left out. Reasons: 1, an index outside (it, dimension,
 * size); 2, another number than planned (it, dimension, planned). */
TF_KERNEL tf_selection_offset(TF_GLOBAL const TF_STORAGE(TINDEX) *begin, TF_GLOBAL const TF_STORAGE(TINDEX) *end,
                              TF_GLOBAL int64_t *offset, TF_GLOBAL const int64_t *selections, int32_t count,
                              TF_GLOBAL int64_t *status, int64_t node) {
  int64_t sum = 0, bad = 0;
  for (int32_t k = 0; k < count && !bad; k++) {
    TF_GLOBAL const int64_t *s = selections + 9 * k;
    int64_t first = TF_LOAD(TINDEX, begin, s[0]), size = s[2];
    if (s[6]) {
      if (first < -size || first >= size) {
        tf_report(status, node, 1, first, s[1], size);
        bad = 1;
      } else {
        sum += (first < 0 ? first + size : first) * s[3];
      }
      continue;
    }
    first = tf_selection_first(first, size, s[4], s[7]);
    const int64_t taken = tf_selection_count(first, TF_LOAD(TINDEX, end, s[0]), size, s[4], s[8]);
    if (taken != s[5]) {
      tf_report(status, node, 2, taken, s[1], s[5]);
      bad = 1;
    } else {
      sum += first * s[3];
    }
  }
  offset[0] = bad ? -1 : sum;
}
