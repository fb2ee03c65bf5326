/* Vectors of indices that say where elements go. T: unsigned integer of an element's bytes; TINDEX: dtype of
 * the indices. */
#include <timberframe/accelerator/language.h>

#include <timberframe/accelerator/division.h>

#define ELEMENT TF_STORAGE(T)
#define INDICES TF_GLOBAL const TF_STORAGE(TINDEX) *

/* The output is [outer, depth, inner], the indices [outer, inner]. multiplier, shift: of tf_quotient by inner. */
TF_KERNEL tf_one_hot(INDICES indices, TF_GLOBAL const ELEMENT *on, TF_GLOBAL const ELEMENT *off,
                     TF_GLOBAL ELEMENT *out, tf_index outer, tf_index depth, tf_index inner, tf_index multiplier,
                     tf_index shift) {
  const ELEMENT hot = on[0], cold = off[0];
  const tf_index length = depth * inner;
  TF_EACH_ROW(row, outer) {
    TF_EACH(i, length) {
      const tf_index d = tf_quotient(i, inner, multiplier, shift);
      const int64_t index = TF_LOAD(TINDEX, indices, row * inner + i - d * inner);
      out[row * length + i] = index == d ? hot : cold;
    }
  }
}

/* x is [outer, first, middle, second, inner]; `first` is the batch where batch_first, else `second`. rows: outer, first
 * and middle together. Reason 1: length, sequence, size. */
TF_KERNEL tf_reverse_sequence(TF_GLOBAL const ELEMENT *in, INDICES lengths, TF_GLOBAL ELEMENT *out,
                              TF_GLOBAL int64_t *status, int64_t node, tf_index rows, tf_index first, tf_index middle,
                              tf_index second, tf_index inner, int32_t batch_first, tf_index multiplier,
                              tf_index shift) {
  const tf_index batch = batch_first ? first : second, limit = batch_first ? second : first;
  if (tf_global_id(1) == 0) {
    TF_EACH(k, batch) {
      const int64_t length = TF_LOAD(TINDEX, lengths, k);
      if (length < 0 || length > limit) tf_report(status, node, 1, length, k, limit);
    }
  }
  TF_EACH_ROW(row, rows) {
    const tf_index k = row / middle % first;
    TF_EACH(at, second * inner) {
      const tf_index i = row * second * inner + at, j = tf_quotient(at, inner, multiplier, shift);
      const int64_t length = TF_LOAD(TINDEX, lengths, batch_first ? k : j);
      const tf_index step = batch_first ? j : k, change = (tf_index)length - 1 - 2 * step;
      const int moved = step < length && length <= limit;
      out[i] = in[moved ? i + change * (batch_first ? inner : middle * second * inner) : i];
    }
  }
}

/* marks: one word for each element. */
TF_KERNEL tf_no_marks(TF_GLOBAL int32_t *marks, tf_index count) {
  TF_EACH(i, count) marks[i] = 0;
}

/* Reasons: 1, an element is no position (it, last position); 2, one occurs twice (the same). */
TF_KERNEL tf_invert_permutation(INDICES in, TF_GLOBAL TF_STORAGE(TINDEX) *out, TF_GLOBAL int32_t *marks,
                                TF_GLOBAL int64_t *status, int64_t node, tf_index count) {
  TF_EACH(i, count) {
    const int64_t at = TF_LOAD(TINDEX, in, i);
    if (at < 0 || at >= count) tf_report(status, node, 1, at, count - 1, 0);
    else if (tf_atomic_add_int32(marks + at, 1)) tf_report(status, node, 2, at, count - 1, 0);
    else TF_STORE(TINDEX, out, at, (TF_VALUE(TINDEX))i);
  }
}

/* The shape that two shapes broadcast to, found by one work-item. Reason 1: both sizes, dimension from the last. */
TF_KERNEL tf_broadcast_args(INDICES x, INDICES y, TF_GLOBAL TF_STORAGE(TINDEX) *out, TF_GLOBAL int64_t *status,
                            int64_t node, int32_t x_rank, int32_t y_rank, int32_t rank) {
  for (int32_t d = 0; d < rank; d++) {
    const int32_t i = d - (rank - x_rank), j = d - (rank - y_rank);
    const int64_t a = i < 0 ? 1 : TF_LOAD(TINDEX, x, i), b = j < 0 ? 1 : TF_LOAD(TINDEX, y, j);
    if (a != b && a != 1 && b != 1) tf_report(status, node, 1, a, b, rank - 1 - d);
    TF_STORE(TINDEX, out, d, (TF_VALUE(TINDEX))(a == 1 ? b : a));
  }
}
