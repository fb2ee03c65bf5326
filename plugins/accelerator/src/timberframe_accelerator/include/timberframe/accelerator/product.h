/* The tiled product of two matrices: what matmul.h and convolution.h have in common.
 *
 * A group of LANES x LINES work-items computes TILE_ROWS x TILE_COLUMNS sums, each work-item EACH_ROW x EACH_COLUMN of
 * them in registers: rows next to each other, columns LANES apart, so that neighbouring work-items read and write
 * neighbouring elements. DEPTH terms are added at a time, of tiles of both matrices in shared memory.
 * PART: the dtype in which is added: float32, float64, and uint32 or uint64, whose sums wrap as signed ones must.
 * LEFT_SWAPPED, RIGHT_SWAPPED: whether a matrix lies in memory transposed. A tile of the left one keeps the order of
 * memory; one of the right one is turned, since the work-items of a row read it along its columns. */
#include <timberframe/accelerator/language.h>

#define TILE_ROWS (LINES * EACH_ROW)
#define TILE_COLUMNS (LANES * EACH_COLUMN)
#define TILE_LEFT (TILE_ROWS * DEPTH)
#define TILE_RIGHT (DEPTH * RIGHT_PITCH)
#define RIGHT_PITCH (TILE_COLUMNS + RIGHT_SWAPPED) /* turning it, a group writes to all banks of shared memory */
#if LEFT_SWAPPED
#define LEFT_INDEX(row, k) ((k) * TILE_ROWS + (row))
#else
#define LEFT_INDEX(row, k) ((row) * DEPTH + (k))
#endif

typedef TF_VALUE(PART) tf_part;

#define tf_add_product_float32(x, y, sum) tf_fused_f32(x, y, sum)
#define tf_add_product_float64(x, y, sum) tf_fused_f64(x, y, sum)
#define tf_add_product_uint32(x, y, sum) ((x) * (y) + (sum))
#define tf_add_product_uint64(x, y, sum) ((x) * (y) + (sum))
#define TF_ADD_PRODUCT(dtype, x, y, sum) TF_JOIN2(add_product, dtype)(x, y, sum)

static inline void tf_clear_sums(tf_part sums[EACH_ROW][EACH_COLUMN]) {
  TF_UNROLL for (int32_t i = 0; i < EACH_ROW; i++) {
    TF_UNROLL for (int32_t j = 0; j < EACH_COLUMN; j++) sums[i][j] = 0;
  }
}

/* Adds the product of two tiles to this work-item's sums. */
TF_INLINE void tf_add_tiles(TF_LOCAL const tf_part *left, TF_LOCAL const tf_part *right,
                            tf_part sums[EACH_ROW][EACH_COLUMN]) {
  const int32_t row = tf_local_id(1) * EACH_ROW;
  for (int32_t k = 0; k < DEPTH; k++) {
    TF_LOCAL const tf_part *line = right + k * RIGHT_PITCH; /* one for all lanes, see TF_LOAD_LINE */
    tf_part y[EACH_COLUMN];
    TF_UNROLL for (int32_t j = 0; j < EACH_COLUMN; j++) y[j] = line[tf_lane() + j * LANES];
    TF_UNROLL for (int32_t i = 0; i < EACH_ROW; i++) {
      const tf_part x = left[LEFT_INDEX(row + i, k)];
      TF_UNROLL for (int32_t j = 0; j < EACH_COLUMN; j++) sums[i][j] = TF_ADD_PRODUCT(PART, x, y[j], sums[i][j]);
    }
  }
}

/* A line of `width` elements goes to shared memory, `stride` apart; from number `limit` on they are zero. The pointers
 * are the same for all lanes, so that a compiler for a CPU sees that these read neighbours. */
#define TF_LOAD_LINE(dtype, from, limit, to, width, stride)                                                      \
  do {                                                                                                           \
    if ((width) <= (limit)) {                                                                                    \
      TF_UNROLL for (int32_t tf_j = 0; tf_j < (width); tf_j += LANES)                                            \
          (to)[(tf_lane() + tf_j) * (stride)] = (tf_part)TF_LOAD(dtype, from, tf_lane() + tf_j);                 \
    } else {                                                                                                     \
      TF_UNROLL for (int32_t tf_j = 0; tf_j < (width); tf_j += LANES)                                            \
          (to)[(tf_lane() + tf_j) * (stride)] =                                                                  \
              tf_local_id(0) + tf_j < (limit) ? (tf_part)TF_LOAD(dtype, from, tf_lane() + tf_j) : (tf_part)0;    \
    }                                                                                                            \
  } while (0)

/* A tile of `lines` x `width` elements of a row-major matrix goes to shared memory, element (i, j) to index
 * i * step + j * stride; elements from `height` or `limit` on are zero. */
#define TF_LOAD_TILE(dtype, matrix, pitch, height, limit, tile, lines, width, step, stride)                      \
  do {                                                                                                           \
    for (int32_t tf_line = tf_local_id(1); tf_line < (lines); tf_line += LINES) {                                \
      TF_GLOBAL const TF_STORAGE(dtype) *tf_from = (matrix) + (int64_t)tf_line * (pitch);                        \
      TF_LOCAL tf_part *tf_to = (tile) + tf_line * (step);                                                       \
      const int32_t tf_limit = tf_line < (height) ? (limit) : 0;                                                 \
      TF_LOAD_LINE(dtype, tf_from, tf_limit, tf_to, width, stride);                                              \
    }                                                                                                            \
  } while (0)

/* This work-item's sums go to their elements of a row-major matrix, whose first element of the tile is `matrix`. */
#define TF_STORE_SUMS(dtype, matrix, pitch, height, limit, sums)                                                \
  do {                                                                                                          \
    TF_UNROLL for (int32_t tf_i = 0; tf_i < EACH_ROW; tf_i++) {                                                 \
      const int32_t tf_row = tf_local_id(1) * EACH_ROW + tf_i;                                                  \
      if (tf_row < (height)) {                                                                                  \
        TF_GLOBAL TF_STORAGE(dtype) *tf_to = (matrix) + (int64_t)tf_row * (pitch);                              \
        TF_UNROLL for (int32_t tf_j = 0; tf_j < TILE_COLUMNS; tf_j += LANES)                                    \
            if (tf_local_id(0) + tf_j < (limit))                                                                \
              TF_STORE(dtype, tf_to, tf_lane() + tf_j, (TF_VALUE(dtype))(sums)[tf_i][tf_j / LANES]);            \
      }                                                                                                         \
    }                                                                                                           \
  } while (0)
