/* MaxPoolWithArgmax and its gradient. T: dtype (unsigned in the gradient of integers); TINDEX: dtype of the indices. */
#include <timberframe/accelerator/windows.h>

/* whole: whether an index is counted in the whole batch instead of its image. */
TF_KERNEL tf_max_pool_argmax(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out,
                             TF_GLOBAL TF_STORAGE(TINDEX) *indices, tf_index rows, WINDOWS, int32_t whole) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    const tf_index image = whole ? 0 : volume * SIZE(0) * SIZE(1) * SIZE(2) * INNER;
    EACH_LANE(OUT) {
      LANE
      TF_VALUE(T) most = 0;
      tf_index found = -1;
      EACH_COVERED(i, j, k) {
        const tf_index at = ELEMENT_AT(i, j, k);
        const TF_VALUE(T) v = TF_LOAD(T, in, at);
        const int larger = (found < 0) | (v > most);
        most = larger ? v : most;
        found = larger ? at : found;
      }
      out[RESULT(OUT)] = found < 0 ? 0 : in[found];
      TF_STORE(TINDEX, indices, RESULT(OUT), (TF_VALUE(TINDEX))(found < 0 ? 0 : found - image));
    }
  }
}

/* The gradient's scratch memory: scratch[0] tells whether an index lies outside the window that it was given for, so
 * that the gradient cannot be gathered; sums of all elements begin at scratch[2]. */
#define UNIT_OF(volume) (whole ? 0 : (volume) * unit)

TF_KERNEL tf_clear_outside_flag(TF_GLOBAL int32_t *scratch) {
  scratch[0] = 0;
}

/* Checks all indices; sets scratch[0] where one lies outside its window. Reason 1: index, image, number of elements. */
TF_KERNEL tf_check_argmax(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL int32_t *scratch, tf_index rows,
                          WINDOWS, tf_index unit, int32_t whole, TF_GLOBAL int64_t *status, int64_t node) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    EACH_LANE(OUT) {
      LANE
      const int64_t index = TF_LOAD(TINDEX, indices, RESULT(OUT));
      int32_t found = 0;
      EACH_COVERED(i, j, k) if (index + UNIT_OF(volume) == ELEMENT_AT(i, j, k)) found = 1;
      if (index < 0 || index >= unit) tf_report(status, node, 1, index, volume, unit);
      else if (!found) scratch[0] = 1;
    }
  }
}

TF_KERNEL tf_gather_argmax(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL const TF_STORAGE(TINDEX) *indices,
                           TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL const int32_t *scratch, tf_index rows, WINDOWS,
                           tf_index unit, int32_t whole) {
  if (scratch[0]) return;
  EACH_ROW {
    ELEMENT_ROW;
    COVERING_ROWS;
    EACH_LANE(SIZE) {
      LANE
      const int64_t own = RESULT(SIZE) - UNIT_OF(volume);
      TF_VALUE(T) sum = 0;
      EACH_COVERING(i, j, k) {
        const tf_index at = WINDOW_AT(i, j, k);
        const TF_VALUE(T) g = TF_LOAD(T, gradient, at);
        sum += TF_LOAD(TINDEX, indices, at) == own ? g : 0;
      }
      TF_STORE(T, out, RESULT(SIZE), sum);
    }
  }
}

/* Indices outside their windows: each work-item adds up one unit (an image, or the batch) in the order of the gradient. Does
 * nothing after an error, or where the gradient was gathered. each: elements of the gradient of a unit. */
TF_KERNEL tf_add_argmax(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL const TF_STORAGE(TINDEX) *indices,
                        TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int32_t *scratch, TF_GLOBAL const int64_t *status,
                        tf_index units, tf_index unit, tf_index each) {
  if (!scratch[0] || status[0]) return;
  TF_GLOBAL TF_VALUE(T) *sums = (TF_GLOBAL TF_VALUE(T) *)(scratch + 2);
  TF_EACH(u, units) {
    for (tf_index i = 0; i < unit; i++) sums[u * unit + i] = 0;
    for (tf_index i = u * each; i < (u + 1) * each; i++)
      sums[u * unit + (tf_index)TF_LOAD(TINDEX, indices, i)] += TF_LOAD(T, gradient, i);
    for (tf_index i = 0; i < unit; i++) TF_STORE(T, out, u * unit + i, sums[u * unit + i]);
  }
}
