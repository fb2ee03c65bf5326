/* Checks of floats. T: unsigned integer of an element's bytes; EXPONENT, FRACTION: their bits in the format. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_no_counts(TF_GLOBAL int32_t *counts) {
  counts[0] = counts[1] = counts[2] = 0;
}

/* Copies, and counts NaN, +Inf and -Inf. */
TF_KERNEL tf_count_odd(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int32_t *counts,
                       tf_index count) {
  TF_EACH(i, count) {
    const TF_STORAGE(T) x = in[i];
    out[i] = x;
    if ((x & EXPONENT) == EXPONENT) {
      const int32_t kind = x & FRACTION ? 0 : x >> (sizeof x * 8 - 1) ? 2 : 1;
      tf_atomic_add_int32(counts + kind, 1);
    }
  }
}

/* Reason 1: NaN, +Inf, -Inf and all infinite elements. */
TF_KERNEL tf_report_odd(TF_GLOBAL const int32_t *counts, TF_GLOBAL int64_t *status, int64_t node) {
  if (counts[0] || counts[1] || counts[2])
    tf_report_details(status, node, 1, counts[0], counts[1], counts[2], (int64_t)counts[1] + counts[2]);
}
