/* Categories by their unnormalised log-probabilities. T: dtype of the logits, TOUT: of the categories.
 * EACH: see tf_running_sums. */
#include <timberframe/accelerator/random_origin.h>
#include <timberframe/elementwise.h>
#include <timberframe/random/uniform.h>

static inline int tf_finite(double x) { return tf_abs_f64(x) < TF_INFINITY64; }

/* The largest finite logit of the classes from `begin` to `end`. */
static inline double tf_largest(TF_GLOBAL const TF_STORAGE(T) *logits, tf_index begin, tf_index end) {
  double largest = -TF_INFINITY64;
  for (tf_index j = begin; j < end; j++) {
    const double x = (double)TF_LOAD(T, logits, j);
    if (tf_finite(x) && x > largest) largest = x;
  }
  return largest;
}

/* Writes the running sums of these classes alone; returns the last. */
static inline double tf_add_exponentials(TF_GLOBAL const TF_STORAGE(T) *logits, TF_GLOBAL double *sums, double largest,
                                         tf_index begin, tf_index end) {
  double total = 0;
  for (tf_index j = begin; j < end; j++) {
    const double x = (double)TF_LOAD(T, logits, j);
    if (tf_finite(x)) total += tf_exp_f64(x - largest);
    sums[j] = total;
  }
  return total;
}

/* Sums of exp(logits - largest) from the first class on; what is not finite adds nothing. With EACH a work-item takes a
 * row, else a group does: each of its work-items the classes of a part of the row, to whose sums it adds those of the parts
 * before it. So sums never fall, and classes that add nothing have the sum of the class before them. */
#ifdef EACH

TF_KERNEL tf_running_sums(TF_GLOBAL const TF_STORAGE(T) *logits, TF_GLOBAL double *sums, tf_index first, tf_index rows,
                          tf_index classes) {
  TF_EACH(row, rows) {
    const tf_index from = (first + row) * classes, to = row * classes;
    const double largest = tf_largest(logits + from, 0, classes);
    tf_add_exponentials(logits + from, sums + to, largest, 0, classes);
  }
}

#else

TF_KERNEL tf_running_sums(TF_GLOBAL const TF_STORAGE(T) *logits, TF_GLOBAL double *sums, tf_index first, tf_index rows,
                          tf_index classes) {
  TF_SHARED double shared[256]; /* most work-items of a group */
  const tf_index lane = tf_local_id(0), lanes = tf_local_size(0), part = (classes + lanes - 1) / lanes;
  const tf_index begin = lane * part < classes ? lane * part : classes;
  const tf_index end = begin + part < classes ? begin + part : classes;
  for (tf_index row = (tf_index)tf_group_id(0); row < rows; row += (tf_index)tf_group_count(0)) {
    const tf_index from = (first + row) * classes, to = row * classes;
    double largest = tf_largest(logits + from, begin, end), before = 0;
    shared[lane] = largest;
    tf_barrier();
    for (tf_index other = 0; other < lanes; other++) largest = shared[other] > largest ? shared[other] : largest;
    tf_barrier();
    shared[lane] = tf_add_exponentials(logits + from, sums + to, largest, begin, end);
    tf_barrier();
    for (tf_index other = 0; other < lane; other++) before += shared[other];
    for (tf_index j = begin; j < end; j++) sums[to + j] += before;
    tf_barrier();
  }
}

#endif

/* For each sample the first class whose sum is above a uniform part of the whole; `classes` if none is. */
TF_KERNEL tf_categories(TF_ORIGIN, TF_GLOBAL const double *sums, TF_GLOBAL TF_STORAGE(TOUT) *out, tf_index begin,
                        tf_index count, tf_index classes, tf_index samples) {
  TF_OPEN
  TF_EACH(k, count) {
    const tf_index i = begin + k, row = k / samples * classes;
    uint32_t x[4];
    philox_block(&g, (uint64_t)i / 2, x);
    const double u = i % 2 ? uniform_float64(x[2], x[3]) : uniform_float64(x[0], x[1]);
    const double point = classes > 0 ? u * sums[row + classes - 1] : 0;
    tf_index lowest = 0, highest = classes;
    while (lowest < highest) {
      const tf_index middle = lowest + (highest - lowest) / 2;
      if (point < sums[row + middle]) {
        highest = middle;
      } else {
        lowest = middle + 1;
      }
    }
    out[i] = (TF_STORAGE(TOUT))lowest;
  }
}
