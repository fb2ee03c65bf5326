/* Products of matrices. TX, TY, TZ: dtypes of the operands and of what is written; further macros: those of product.h.
 * Operands are batches of dense matrices, which begin at x_start, y_start and z_start. `walk` finds the matrices of a
 * product: the number of batch dimensions, and of each, innermost first, its size and the steps of both operands in
 * matrices. */
#include <timberframe/accelerator/product.h>

static inline void tf_find_matrices(TF_GLOBAL const int64_t *walk, int64_t number, int64_t *x, int64_t *y) {
  *x = *y = 0;
  for (int64_t d = 1; d < 1 + 3 * walk[0]; d += 3) {
    const int64_t at = number % walk[d];
    *x += at * walk[d + 1];
    *y += at * walk[d + 2];
    number /= walk[d];
  }
}

/* The terms of each product may be cut into `parts` of `length` terms, whose sums lie one batch after the other. */
TF_KERNEL_OF(LANES, LINES, 1) tf_matmul(TF_GLOBAL const TF_STORAGE(TX) *x, int64_t x_start,
                                        TF_GLOBAL const TF_STORAGE(TY) *y, int64_t y_start,
                                        TF_GLOBAL TF_STORAGE(TZ) *z, int64_t z_start, int32_t rows, int32_t columns,
                                        int32_t depth, int32_t batch, int32_t parts, int32_t length,
                                        TF_GLOBAL const int64_t *walk) {
  TF_SHARED tf_part left[TILE_LEFT];
  TF_SHARED tf_part right[TILE_RIGHT];
  const int32_t row_tiles = (rows - 1) / TILE_ROWS + 1, tile = (int32_t)tf_group_id(0);
  const int32_t row = tile % row_tiles * TILE_ROWS, column = tile / row_tiles * TILE_COLUMNS;
  for (int32_t number = (int32_t)tf_group_id(2); number < batch * parts; number += (int32_t)tf_group_count(2)) {
    const int32_t first = number / batch * length, end = depth - first < length ? depth : first + length;
    int64_t at_x, at_y;
    tf_find_matrices(walk, number % batch, &at_x, &at_y);
    at_x = x_start + at_x * rows * depth;
    at_y = y_start + at_y * depth * columns;
    tf_part sums[EACH_ROW][EACH_COLUMN];
    tf_clear_sums(sums);
    for (int32_t k = first; k < end; k += DEPTH) {
      tf_barrier();
#if LEFT_SWAPPED
      TF_LOAD_TILE(TX, x + at_x + (int64_t)k * rows + row, rows, end - k, rows - row, left, DEPTH, TILE_ROWS,
                   TILE_ROWS, 1);
#else
      TF_LOAD_TILE(TX, x + at_x + (int64_t)row * depth + k, depth, rows - row, end - k, left, TILE_ROWS, DEPTH,
                   DEPTH, 1);
#endif
#if RIGHT_SWAPPED
      TF_LOAD_TILE(TY, y + at_y + (int64_t)column * depth + k, depth, columns - column, end - k, right,
                   TILE_COLUMNS, DEPTH, 1, RIGHT_PITCH);
#else
      TF_LOAD_TILE(TY, y + at_y + (int64_t)k * columns + column, columns, end - k, columns - column, right, DEPTH,
                   TILE_COLUMNS, RIGHT_PITCH, 1);
#endif
      tf_barrier();
      tf_add_tiles(left, right, sums);
    }
    TF_STORE_SUMS(TZ, z + z_start + ((int64_t)number * rows + row) * columns + column, columns, rows - row,
                  columns - column, sums);
  }
}

/* Small matrices: one element of the result each. Steps are those of rows and terms of x, of terms and columns of y. */
TF_KERNEL tf_small_matmul(TF_GLOBAL const TF_STORAGE(TX) *x, int64_t x_start, TF_GLOBAL const TF_STORAGE(TY) *y,
                          int64_t y_start, TF_GLOBAL TF_STORAGE(TZ) *z, int64_t z_start, tf_index count, int32_t rows,
                          int32_t columns, int32_t depth, int32_t x_row, int32_t x_term, int32_t y_term,
                          int32_t y_column, TF_GLOBAL const int64_t *walk) {
  TF_EACH(i, count) {
    const int32_t column = (int32_t)(i % columns), row = (int32_t)(i / columns % rows);
    int64_t at_x, at_y;
    tf_find_matrices(walk, i / columns / rows, &at_x, &at_y);
    at_x = x_start + at_x * rows * depth + (int64_t)row * x_row;
    at_y = y_start + at_y * depth * columns + (int64_t)column * y_column;
    tf_part sum = 0;
    for (int32_t k = 0; k < depth; k++) {
      const tf_part a = (tf_part)TF_LOAD(TX, x, at_x + (int64_t)k * x_term);
      const tf_part b = (tf_part)TF_LOAD(TY, y, at_y + (int64_t)k * y_term);
      sum = TF_ADD_PRODUCT(PART, a, b, sum);
    }
    TF_STORE(TZ, z, z_start + i, (TF_VALUE(TZ))sum);
  }
}
