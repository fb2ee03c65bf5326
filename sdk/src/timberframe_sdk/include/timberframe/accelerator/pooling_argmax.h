/* MaxPoolWithArgmax and its gradient. T: dtype (unsigned in the gradient of integers); TINDEX: dtype of the places. */
#include <timberframe/accelerator/windows.h>

/* whole: whether a place is counted in the whole batch instead of its image. */
TF_KERNEL tf_max_pool_argmax(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out,
                             TF_GLOBAL TF_STORAGE(TINDEX) *places, tf_index count, WINDOWS, int32_t whole) {
  TF_EACH(n, count) {
    FIND_WINDOW(n);
    COVERED(0, z);
    COVERED(1, y);
    COVERED(2, x);
    TF_VALUE(T) most = 0;
    tf_index found = -1;
    EACH_OF(i, j, k) {
      const tf_index at = ELEMENT_AT(i, j, k);
      const TF_VALUE(T) v = TF_LOAD(T, in, at);
      if (found < 0 || v > most) {
        most = v;
        found = at;
      }
    }
    const tf_index image = whole ? 0 : volume * SIZE(0) * SIZE(1) * SIZE(2) * INNER;
    out[n] = found < 0 ? 0 : in[found];
    TF_STORE(TINDEX, places, n, (TF_VALUE(TINDEX))(found < 0 ? 0 : found - image));
  }
}

/* The gradient's scratch memory: scratch[0] tells whether a place lies outside the window that it was given for, so that
 * the gradient cannot be gathered; sums of all elements begin at scratch[2]. */
#define UNIT_OF(volume) (whole ? 0 : (volume) * unit)

TF_KERNEL tf_no_strays(TF_GLOBAL int32_t *scratch) {
  scratch[0] = 0;
}

/* Checks all places; sets scratch[0] where one lies outside its window. Reason 1: place, image, number of places. */
TF_KERNEL tf_check_places(TF_GLOBAL const TF_STORAGE(TINDEX) *places, TF_GLOBAL int32_t *scratch, tf_index count,
                          WINDOWS, tf_index unit, int32_t whole, TF_GLOBAL int64_t *status, int64_t node) {
  TF_EACH(n, count) {
    FIND_WINDOW(n);
    COVERED(0, z);
    COVERED(1, y);
    COVERED(2, x);
    const int64_t place = TF_LOAD(TINDEX, places, n);
    if (place < 0 || place >= unit) {
      tf_report(status, node, 1, place, volume, unit);
      continue;
    }
    const tf_index element = (tf_index)place + UNIT_OF(volume);
    const tf_index at = element / INNER, line = at / SIZE(2), sheet = line / SIZE(1), owner = sheet / SIZE(0);
    const tf_index i = sheet - owner * SIZE(0), j = line - sheet * SIZE(1), k = at - line * SIZE(2);
    if (owner != volume || element - at * INNER != c || i < first0 || i >= end0 || j < first1 || j >= end1 ||
        k < first2 || k >= end2)
      scratch[0] = 1;
  }
}

TF_KERNEL tf_gather_places(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL const TF_STORAGE(TINDEX) *places,
                           TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL const int32_t *scratch, tf_index count, WINDOWS,
                           tf_index unit, int32_t whole) {
  if (scratch[0]) return;
  TF_EACH(n, count) {
    FIND_ELEMENT(n);
    COVERING(0, z);
    COVERING(1, y);
    COVERING(2, x);
    const int64_t own = n - UNIT_OF(volume);
    TF_VALUE(T) sum = 0;
    EACH_OF(i, j, k) {
      const tf_index at = WINDOW_AT(i, j, k);
      if (TF_LOAD(TINDEX, places, at) == own) sum += TF_LOAD(T, gradient, at);
    }
    TF_STORE(T, out, n, sum);
  }
}

/* Places of no window: each work-item adds up one unit (an image, or the batch) in the order of the gradient. Does
 * nothing after an error, or where the gradient was gathered. each: elements of the gradient of a unit. */
TF_KERNEL tf_add_places(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL const TF_STORAGE(TINDEX) *places,
                        TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int32_t *scratch, TF_GLOBAL const int64_t *status,
                        tf_index units, tf_index unit, tf_index each) {
  if (!scratch[0] || status[0]) return;
  TF_GLOBAL TF_VALUE(T) *sums = (TF_GLOBAL TF_VALUE(T) *)(scratch + 2);
  TF_EACH(u, units) {
    for (tf_index i = 0; i < unit; i++) sums[u * unit + i] = 0;
    for (tf_index i = u * each; i < (u + 1) * each; i++)
      sums[u * unit + (tf_index)TF_LOAD(TINDEX, places, i)] += TF_LOAD(T, gradient, i);
    for (tf_index i = 0; i < unit; i++) TF_STORE(T, out, u * unit + i, sums[u * unit + i]);
  }
}
