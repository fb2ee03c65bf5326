/* The copies of an einsum. T: dtype of what is read, TZ: of what is written, PART: in which is added.
 *
 * A walk over a tensor that is not dense: the number of dimensions, and of each, innermost first, size and stride. */
#include <timberframe/accelerator/language.h>

static inline tf_index tf_offset(TF_GLOBAL const tf_index *walk, tf_index number) {
  tf_index offset = 0;
  for (tf_index d = 1; d < 1 + 2 * walk[0]; d += 2) {
    const tf_index rest = number / walk[d];
    offset += (number - rest * walk[d]) * walk[d + 1];
    number = rest;
  }
  return offset;
}

/* Element i of the result is the sum of `terms` elements. These are cut into `parts` of `length`, whose sums lie one
 * after the other. */
TF_KERNEL tf_gather_sums(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL TF_STORAGE(TZ) *out, int64_t out_start,
                         TF_GLOBAL const tf_index *kept, TF_GLOBAL const tf_index *summed, tf_index count,
                         tf_index terms, tf_index parts, tf_index length) {
  TF_EACH(i, count * parts) {
    const tf_index first = i / count * length, end = terms - first < length ? terms : first + length;
    const tf_index from = tf_offset(kept, i % count);
    TF_VALUE(PART) sum = 0;
    for (tf_index k = first; k < end; k++) sum += (TF_VALUE(PART))TF_LOAD(T, x, from + tf_offset(summed, k));
    TF_STORE(TZ, out, out_start + i, (TF_VALUE(TZ))sum);
  }
}

TF_KERNEL tf_clear(TF_GLOBAL TF_STORAGE(TZ) *out, tf_index count) {
  TF_EACH(i, count) TF_STORE(TZ, out, i, (TF_VALUE(TZ))0);
}

/* Element i of a dense tensor goes to position i of the walk. */
TF_KERNEL tf_scatter(TF_GLOBAL const TF_STORAGE(T) *x, int64_t x_start, TF_GLOBAL TF_STORAGE(TZ) *out,
                     TF_GLOBAL const tf_index *walk, tf_index count) {
  TF_EACH(i, count) TF_STORE(TZ, out, tf_offset(walk, i), (TF_VALUE(TZ))TF_LOAD(T, x, x_start + i));
}
