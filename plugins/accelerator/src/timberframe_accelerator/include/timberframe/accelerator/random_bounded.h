/* Normal numbers between bounds. T: dtype of all. Batches take blocks one after another from one sequence, and how many
 * one takes only drawing tells: so a group makes one after the other, its work-items a step of blocks each; with EACH, for
 * small batches, one work-item makes them all. */
#include <timberframe/accelerator/group_scan.h>
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

#ifndef EACH

/* Whether one of the numbers that a pass gives comes after too many rejected candidates. places: those of accepted
 * candidates in the pass; taken: how many are taken; rejected: the candidates rejected at the end of the pass before. */
TF_INLINE int tf_gives_up(TF_LOCAL tf_index *shared, TF_LOCAL const int32_t *places, tf_index taken, int64_t rejected) {
  tf_index gaps = 0, all;
  for (tf_index r = tf_local_id(0); r < taken; r += TF_SCANNING) {
    const int64_t before = r ? places[r - 1] : -1 - rejected;
    gaps += places[r] - before > BOUNDED_ITERATIONS;
  }
  tf_scan_group(shared, gaps, &all);
  return all > 0;
}

/* Fills a batch as tf_bounded_batch does. shared, places: two and BOUNDED_CANDIDATES for each work-item. */
TF_INLINE int tf_fill_batch(TF_LOCAL tf_index *shared, TF_LOCAL int32_t *places, const philox *g, uint64_t *block,
                            value low, value high, value mean, value deviation, TF_GLOBAL TF_STORAGE(T) *out,
                            int64_t count, int64_t step) {
  const int32_t item = tf_local_id(0);
  const tf_bounded_method m = tf_bounded_method_of(low, high);
  const int32_t candidates = TF_SCANNING * m.candidates;
  int64_t filled = 0, rejected = 0;
  while (filled < count) {
    value values[BOUNDED_CANDIDATES];
    const int accepted = tf_bounded_step(g, *block + (uint64_t)(item * m.blocks), &m, values);
    const int64_t wanted = count - filled;
    tf_index own = 0, all;
    for (int k = 0; k < m.candidates; k++) own += accepted >> k & 1;
    tf_index place = tf_scan_group(shared, own, &all);
    for (int k = 0; k < m.candidates; k++) {
      if (!(accepted >> k & 1)) continue;
      places[place] = item * m.candidates + k;
      if (place < wanted) STORE(out, (filled + place) * step, ROUND(ROUND(values[k] * deviation) + mean));
      place++;
    }
    tf_barrier();
    const tf_index taken = all < wanted ? all : (tf_index)wanted;
    const int64_t end = taken ? candidates - 1 - places[taken - 1] : rejected + candidates;
    if (taken < wanted && end >= BOUNDED_ITERATIONS) return 0;
    if (rejected + candidates - all >= BOUNDED_ITERATIONS && tf_gives_up(shared, places, taken, rejected)) return 0;
    *block += (uint64_t)(taken < wanted ? TF_SCANNING : places[taken - 1] / m.candidates + 1) * m.blocks;
    filled += taken;
    rejected = end;
  }
  return 1;
}

#define FILL_BATCH(...) tf_fill_batch(shared, places, __VA_ARGS__)

#else

#define FILL_BATCH(...) tf_bounded_batch(__VA_ARGS__)

#endif

/* batch: numbers of each row, `step` apart and beginning at row * start; indices: of each row's four parameters. */
TF_KERNEL tf_fill_bounded(TF_ORIGIN, TF_GLOBAL const TF_STORAGE(T) *means, TF_GLOBAL const TF_STORAGE(T) *deviations,
                          TF_GLOBAL const TF_STORAGE(T) *minima, TF_GLOBAL const TF_STORAGE(T) *maxima,
                          TF_GLOBAL const int64_t *indices, TF_GLOBAL TF_STORAGE(T) *out, int64_t size, int64_t batch,
                          int64_t start, int64_t step) {
#ifdef EACH
  if (tf_global_id(0) != 0) return;
#else
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  TF_SHARED int32_t places[BOUNDED_CANDIDATES * TF_SCANNING];
#endif
  TF_OPEN
  uint64_t block = 0;
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
    if (!FILL_BATCH(&g, &block, ROUND(ROUND(least - mean) / deviation), ROUND(ROUND(most - mean) / deviation), mean,
                    deviation, out + i * start, left < batch ? left : batch, step)) {
      tf_report(status, node, 3, i, 0, 0);
      return;
    }
  }
}
