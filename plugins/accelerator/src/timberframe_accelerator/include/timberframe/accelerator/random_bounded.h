/* Normal numbers between bounds. T: dtype of all. Batches take blocks one after another from one sequence, and how many
 * one takes only drawing tells: so one work-item makes them all. */
#include <timberframe/accelerator/random_origin.h>

#define TF_DTYPE_float16 1
#define TF_DTYPE_float32 2
#define TF_DTYPE_float64 3
#define TF_DTYPE(dtype) TF_DTYPE_(dtype)
#define TF_DTYPE_(dtype) TF_DTYPE_##dtype

#include <timberframe/random/bounded.h>
#if TF_DTYPE(T) == 3
#include <timberframe/random/normal_float64.h>
#else
#include <timberframe/random/normal_float32.h>
#endif

typedef TF_VALUE(T) value;

#define STORE(out, i, number) TF_STORE(T, out, i, number)
#define HALF_ROUND(x) tf_float32_from_float16(tf_float16_from_float32(x))
#define PAIR32(x, i, out) normal_pair_float32((x) + 2 * (i), out)
#define PAIR64(x, i, out) normal_pair_float64((x) + 4 * (i), out)

#if TF_DTYPE(T) == 3
#define ROUND(x) (x)
BOUNDED_BATCH(tf_bounded, TF_STORAGE(T), value, ROUND, STORE, BOUNDED_UNIFORM64, PAIR64, 2, tf_root_f64, tf_exp_f64,
              tf_log_f64, TF_GLOBAL)
#else
#if TF_DTYPE(T) == 1
#define ROUND(x) HALF_ROUND(x)
#define UNIFORM BOUNDED_UNIFORM16
#else
#define ROUND(x) (x)
#define UNIFORM BOUNDED_UNIFORM32
#endif
BOUNDED_BATCH(tf_bounded, TF_STORAGE(T), value, ROUND, STORE, UNIFORM, PAIR32, 4, tf_root_f32, tf_exp_f32, tf_log_f32,
              TF_GLOBAL)
#endif

/* batch: numbers of each row, `step` apart and beginning at row * start; indices: of each row's four parameters. */
TF_KERNEL tf_fill_bounded(TF_ORIGIN, TF_GLOBAL const TF_STORAGE(T) *means, TF_GLOBAL const TF_STORAGE(T) *deviations,
                          TF_GLOBAL const TF_STORAGE(T) *minima, TF_GLOBAL const TF_STORAGE(T) *maxima,
                          TF_GLOBAL const int64_t *indices, TF_GLOBAL TF_STORAGE(T) *out, int64_t size, int64_t batch,
                          int64_t start, int64_t step) {
  TF_OPEN
  uint64_t block = 0;
  if (tf_global_id(0) != 0) return;
  for (int64_t i = 0; i * batch < size; i++) {
    const value mean = TF_LOAD(T, means, indices[4 * i]);
    value deviation = TF_LOAD(T, deviations, indices[4 * i + 1]), least = TF_LOAD(T, minima, indices[4 * i + 2]);
    value most = TF_LOAD(T, maxima, indices[4 * i + 3]);
    const int has_least = least - least == 0, has_most = most - most == 0;
    if (!(deviation > 0 && least < most && (has_least || has_most))) {
      tf_report(status, node, 2, i, 0, 0);
      return;
    }
    if ((!has_least && least < 0) || most < mean) { /* seen from the other side */
      const value kept = least;
      least = most;
      most = kept;
      deviation = -deviation;
    }
    const int64_t left = size - i * batch;
    if (!tf_bounded_batch(&g, &block, ROUND(ROUND(least - mean) / deviation), ROUND(ROUND(most - mean) / deviation),
                          mean, deviation, out + i * start, left < batch ? left : batch, step)) {
      tf_report(status, node, 3, i, 0, 0);
      return;
    }
  }
}
