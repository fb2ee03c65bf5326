/* HistogramFixedWidth. T: dtype of values. Counts are made in int32 by atomic additions, whose order does not matter.
 * Without float64, what lies at the border of two bins may count in the other. */
#include <timberframe/accelerator/language.h>
#include <timberframe/math/language.h>

#ifdef TF_NO_FLOAT64
typedef float tf_wide;
#else
typedef double tf_wide;
#endif

TF_KERNEL tf_clear(TF_GLOBAL int32_t *counts, tf_index bins) {
  TF_EACH(i, bins) counts[i] = 0;
}

/* Reasons: 1, the range is none, or infinite (the bits of its limits as float32); 2, a value is NaN (its number). */
TF_KERNEL tf_count(TF_GLOBAL const TF_STORAGE(T) *values, TF_GLOBAL const TF_STORAGE(T) *limits,
                   TF_GLOBAL int32_t *counts, TF_GLOBAL int64_t *status, int64_t node, tf_index size, tf_index bins) {
  const TF_VALUE(T) low = TF_LOAD(T, limits, 0), high = TF_LOAD(T, limits, 1);
  const tf_wide width = (tf_wide)high - (tf_wide)low, step = width / (tf_wide)bins;
  if (!(low < high) || !(width < (tf_wide)TF_INFINITY32)) {
    if (tf_global_id(0) == 0) tf_report(status, node, 1, tf_bits_of_f32((float)low), tf_bits_of_f32((float)high), 0);
  } else {
    TF_EACH(i, size) {
      const TF_VALUE(T) v = TF_LOAD(T, values, i), bounded = v > high ? high : v > low ? v : low;
      if (!(v > low) && !(v <= low)) tf_report(status, node, 2, i, 0, 0);
      const tf_index bin = (tf_index)(((tf_wide)bounded - (tf_wide)low) / step);
      tf_atomic_add_int32(&counts[bin < bins ? bin : bins - 1], 1);
    }
  }
}

TF_KERNEL tf_widen(TF_GLOBAL const int32_t *counts, TF_GLOBAL int64_t *out, tf_index bins) {
  TF_EACH(i, bins) out[i] = counts[i];
}
