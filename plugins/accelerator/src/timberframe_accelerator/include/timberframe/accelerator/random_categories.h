/* Categories by their unnormalised log-probabilities. T: dtype of the logits, TOUT: of the categories. */
#include <timberframe/accelerator/random_origin.h>
#include <timberframe/elementwise.h>
#include <timberframe/random/uniform.h>

static inline int tf_finite(double x) { return tf_abs_f64(x) < TF_INFINITY64; }

/* Sums of exp(logits - largest) from the first class on, a row for each work-item; what is not finite adds nothing. */
TF_KERNEL tf_running_sums(TF_GLOBAL const TF_STORAGE(T) *logits, TF_GLOBAL double *sums, tf_index first, tf_index rows,
                          tf_index classes) {
  TF_EACH(row, rows) {
    const tf_index from = (first + row) * classes, to = row * classes;
    double largest = -TF_INFINITY64, total = 0;
    for (tf_index j = 0; j < classes; j++) {
      const double x = (double)TF_LOAD(T, logits, from + j);
      if (tf_finite(x) && x > largest) largest = x;
    }
    for (tf_index j = 0; j < classes; j++) {
      const double x = (double)TF_LOAD(T, logits, from + j);
      if (tf_finite(x)) total += tf_exp_f64(x - largest);
      sums[to + j] = total;
    }
  }
}

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
