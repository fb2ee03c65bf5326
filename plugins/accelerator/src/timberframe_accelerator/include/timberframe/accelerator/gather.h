/* Gather and similar ops. T: unsigned integer that divides a slice; TINDEX: dtype of the indices. */
#include <timberframe/accelerator/division.h>

/* params is [batch, outer, limit, inner], indices [batch, count], the output [batch, outer, count, inner]. */
TF_KERNEL tf_gather(TF_GLOBAL const TF_STORAGE(T) *params, TF_GLOBAL const TF_STORAGE(TINDEX) *indices,
                    TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int64_t *status, int64_t node, tf_index size,
                    tf_index outer, tf_index limit, TF_DIVISOR(count), TF_DIVISOR(inner)) {
  TF_EACH(i, size) {
    const tf_index row = TF_QUOTIENT(i, inner), block = TF_QUOTIENT(row, count);
    const tf_index position = block / outer * count + row - block * count;
    const int64_t index = TF_LOAD(TINDEX, indices, position);
    if (index < 0 || index >= limit) {
      tf_report(status, node, 1, index, position, limit);
      out[i] = 0;
    } else {
      out[i] = params[(block * limit + (tf_index)index) * inner + i - row * inner];
    }
  }
}

/* The same where batch and outer are 1. */
TF_SCALAR_KERNEL tf_gather_rows(TF_GLOBAL const TF_STORAGE(T) *params, TF_GLOBAL const TF_STORAGE(TINDEX) *indices,
                                TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int64_t *status, int64_t node, tf_index size,
                                tf_index outer, tf_index limit, TF_DIVISOR(count), TF_DIVISOR(inner)) {
  (void)outer, (void)count, (void)count_multiplier, (void)count_shift;
  TF_EACH(i, size) {
    const tf_index row = TF_QUOTIENT(i, inner);
    const int64_t index = TF_LOAD(TINDEX, indices, row);
    if (index < 0 || index >= limit) {
      tf_report(status, node, 1, index, row, limit);
      out[i] = 0;
    } else {
      out[i] = params[(tf_index)index * inner + i - row * inner];
    }
  }
}
