/* Batches of matrices transposed: what brings tensors with channels first to channels last, and back. T: unsigned
 * integer of an element's bytes. A group is SIDE x SIDE work-items. */
#include <timberframe/accelerator/language.h>

#define SIDE 16

TF_KERNEL_OF(SIDE, SIDE, 1) tf_swap(TF_GLOBAL const TF_STORAGE(T) *x, int64_t x_start, TF_GLOBAL TF_STORAGE(T) *y,
                                    int64_t y_start, int32_t batch, int32_t rows, int32_t columns) {
  TF_SHARED TF_STORAGE(T) tile[SIDE * (SIDE + 1)]; /* one more, so that a column lies in different banks */
  const int32_t row_tiles = (rows - 1) / SIDE + 1, number = (int32_t)tf_group_id(0);
  const int32_t row = number % row_tiles * SIDE, column = number / row_tiles * SIDE, line = tf_local_id(1);
  for (int32_t i = (int32_t)tf_group_id(2); i < batch; i += (int32_t)tf_group_count(2)) {
    TF_GLOBAL const TF_STORAGE(T) *from = x + x_start + ((int64_t)i * rows + row + line) * columns + column;
    TF_GLOBAL TF_STORAGE(T) *to = y + y_start + ((int64_t)i * columns + column + line) * rows + row;
    tf_barrier();
    if (row + line < rows && column + tf_local_id(0) < columns) tile[line * (SIDE + 1) + tf_lane()] = from[tf_lane()];
    tf_barrier();
    if (column + line < columns && row + tf_local_id(0) < rows) to[tf_lane()] = tile[tf_lane() * (SIDE + 1) + line];
  }
}
