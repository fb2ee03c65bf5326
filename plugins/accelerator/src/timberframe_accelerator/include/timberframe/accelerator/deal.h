/* Taking slices apart by number, and putting them together. T: unsigned integer that divides a slice; KEY: dtype of the
 * numbers. */
#include <timberframe/accelerator/sort.h>

/* Slices of data whose numbers are sorted on side `side` of the workspace: those from entry `begin` on, in order. */
TF_KERNEL tf_take_slices(TF_GLOBAL const TF_STORAGE(T) *data, TF_GLOBAL TF_STORAGE(T) *out,
                         TF_GLOBAL uint8_t *workspace, tf_index size, tf_index inner, tf_index count, tf_index side,
                         tf_index begin) {
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, count) + begin;
  TF_EACH(i, size) {
    const tf_index slice = i / inner;
    out[i] = data[positions[slice] * inner + i - slice * inner];
  }
}

/* moves: for each of the slices a row of out and the row of data that it takes, or -1 for zeros. */
TF_KERNEL tf_put_slices(TF_GLOBAL const TF_STORAGE(T) *data, TF_GLOBAL TF_STORAGE(T) *out,
                        TF_GLOBAL const tf_index *moves, tf_index size, tf_index inner) {
  TF_EACH(i, size) {
    const tf_index slice = i / inner, column = i - slice * inner, from = moves[2 * slice + 1];
    out[moves[2 * slice] * inner + column] = from < 0 ? 0 : data[from * inner + column];
  }
}
