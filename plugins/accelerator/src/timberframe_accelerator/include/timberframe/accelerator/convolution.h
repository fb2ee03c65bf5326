/* Convolutions of images and volumes with channels last, as tiled products that gather one operand from an image.
 *
 * A pixel and a term (a tap of the window and a channel) name an element of the source. A convolution and its gradient
 * by the input are products of pixels x terms by terms x channels; the gradient by the filter is one of terms x pixels
 * by pixels x channels. T: dtype of the tensors, TZ: of what is written; CONTIGUOUS: whether LANES neighbouring terms,
 * from a multiple of LANES on, are neighbouring channels of one tap; further macros: those of product.h, LEFT_SWAPPED
 * being 1 for the gradient by the filter.
 *
 * sizes, terms: see pixels.h. */
#include <timberframe/accelerator/product.h>

#include <timberframe/accelerator/pixels.h>

#if LEFT_SWAPPED
#define PIXELS DEPTH
#define SPAN TILE_ROWS
#else
#define PIXELS TILE_ROWS
#define SPAN DEPTH
#endif

/* Pixel `number` of a phase: its position in the source, and the offset of its first element there. */
TF_INLINE void tf_find_pixel(TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *phase, int32_t number,
                             int32_t count, TF_LOCAL int32_t *position, TF_LOCAL int64_t *source) {
  const int32_t row = QUOTIENT(number, WIDTH), x = number - row * phase[COUNT_WIDTH];
  const int32_t plane = QUOTIENT(row, HEIGHT), y = row - plane * phase[COUNT_HEIGHT];
  const int32_t image = QUOTIENT(plane, DEPTH), z = plane - image * phase[COUNT_DEPTH];
  const int inside = number < count;
  position[0] = inside ? z * sizes[STEP_DEPTH] : FAR;
  position[1] = y * sizes[STEP_HEIGHT];
  position[2] = x * sizes[STEP_WIDTH];
  const int64_t source_plane = (int64_t)image * sizes[SOURCE_DEPTH] + z * sizes[STEP_DEPTH];
  const int64_t line = source_plane * sizes[SOURCE_HEIGHT] + position[1];
  *source = inside ? (line * sizes[SOURCE_WIDTH] + position[2]) * sizes[SOURCE_CHANNELS] : 0;
}

/* PIXELS pixels from `first` on. */
TF_INLINE void tf_find_pixels(TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *phase, int32_t first,
                              int32_t count, TF_LOCAL int32_t *positions, TF_LOCAL int64_t *sources) {
  for (int32_t i = tf_local_id(1) * LANES + tf_local_id(0); i < PIXELS; i += LANES * LINES)
    tf_find_pixel(sizes, phase, first + i, count, positions + 3 * i, sources + i);
}

/* The elements of SPAN terms, of which `terms` is the first, for each of the pixels; zeros outside the image. */
TF_INLINE void tf_gather_tile(TF_GLOBAL const TF_STORAGE(T) *image, TF_GLOBAL const int32_t *sizes,
                              TF_GLOBAL const int32_t *terms, TF_LOCAL const int32_t *positions,
                              TF_LOCAL const int64_t *sources, TF_LOCAL tf_part *tile) {
  const int32_t count = sizes[TERMS];
  TF_UNROLL for (int32_t j = 0; j < SPAN; j += LANES) {
#if CONTIGUOUS
    TF_GLOBAL const int32_t *term = terms + j;
#else
    TF_GLOBAL const int32_t *term = terms + j + tf_lane();
#endif
    const int32_t z = term[0], y = term[count], x = term[2 * count], offset = term[3 * count];
    for (int32_t i = tf_local_id(1); i < PIXELS; i += LINES) {
      TF_GLOBAL const TF_STORAGE(T) *from = image + sources[i] + offset;
      TF_LOCAL tf_part *to = tile + i * SPAN + j;
#if CONTIGUOUS
      if (IS_INSIDE(sizes, positions + 3 * i, z, y, x))
        to[tf_lane()] = (tf_part)TF_LOAD(T, from, tf_lane());
      else
        to[tf_lane()] = 0;
#else
      to[tf_lane()] = IS_INSIDE(sizes, positions + 3 * i, z, y, x) ? (tf_part)TF_LOAD(T, from, 0) : (tf_part)0;
#endif
    }
  }
}

#if !LEFT_SWAPPED

/* The convolution, or its gradient by the input. Offsets are those of the tensors in what is passed. */
TF_KERNEL_OF(LANES, LINES, 1) tf_convolve(TF_GLOBAL const TF_STORAGE(T) *image, int64_t image_start,
                                          TF_GLOBAL const TF_STORAGE(T) *filter, int64_t filter_start,
                                          TF_GLOBAL TF_STORAGE(TZ) *out, int64_t out_start,
                                          TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *terms,
                                          int32_t numbers, int32_t row_tiles) {
  TF_SHARED tf_part left[TILE_LEFT];
  TF_SHARED tf_part right[TILE_RIGHT];
  TF_SHARED int32_t positions[3 * PIXELS];
  TF_SHARED int64_t sources[PIXELS];
  const int32_t tile = (int32_t)tf_group_id(0), columns = sizes[GROUP_COLUMNS], groups = sizes[GROUPS];
  const int32_t row = tile % row_tiles * TILE_ROWS, column = tile / row_tiles * TILE_COLUMNS;
  for (int32_t number = (int32_t)tf_group_id(2); number < numbers; number += (int32_t)tf_group_count(2)) {
    const int32_t group = number % groups;
    TF_GLOBAL const int32_t *phase = sizes + PHASES + number / groups * PHASE_WORDS;
    const int32_t rows = sizes[BATCH] * phase[COUNT_DEPTH] * phase[COUNT_HEIGHT] * phase[COUNT_WIDTH];
    const int32_t first = phase[FIRST_TERM], count = row < rows ? phase[TERM_COUNT] : 0;
    tf_part sums[EACH_ROW][EACH_COLUMN];
    tf_clear_sums(sums);
    tf_barrier();
    tf_find_pixels(sizes, phase, row, rows, positions, sources);
    for (int32_t k = 0; k < count; k += DEPTH) {
      tf_barrier();
      tf_gather_tile(image + image_start + group * sizes[GROUP_CHANNELS], sizes, terms + first + k, positions, sources,
                     left);
      for (int32_t i = tf_local_id(1); i < DEPTH; i += LINES) {
        const int inside = k + i < count;
        const int64_t line = inside ? terms[4 * sizes[TERMS] + first + k + i] + group * sizes[GROUP_LINES] : 0;
        TF_GLOBAL const TF_STORAGE(T) *from =
            filter + filter_start + line * sizes[FILTER_PITCH] + group * sizes[FILTER_STEP] + column;
        const int32_t limit = inside ? columns - column : 0;
        TF_LOAD_LINE(T, from, limit, right + i * RIGHT_PITCH, TILE_COLUMNS, 1);
      }
      tf_barrier();
      tf_add_tiles(left, right, sums);
    }
    TF_UNROLL for (int32_t i = 0; i < EACH_ROW; i++) {
      const int32_t at = tf_local_id(1) * EACH_ROW + i;
      if (row + at < rows) {
        TF_GLOBAL TF_STORAGE(TZ) *to = out + out_start + tf_target_offset(sizes, phase, row + at);
        to += group * columns + column;
        TF_UNROLL for (int32_t j = 0; j < TILE_COLUMNS; j += LANES)
            if (tf_local_id(0) + j < columns - column)
              TF_STORE(TZ, to, tf_lane() + j, (TF_VALUE(TZ))sums[i][j / LANES]);
      }
    }
  }
}

#else

/* The gradient by the filter, [terms, channels of all groups]. The pixels are cut into parts of `length`, whose sums
 * lie one after the other. */
TF_KERNEL_OF(LANES, LINES, 1) tf_convolve_filter(TF_GLOBAL const TF_STORAGE(T) *image, int64_t image_start,
                                                 TF_GLOBAL const TF_STORAGE(T) *gradient, int64_t gradient_start,
                                                 TF_GLOBAL TF_STORAGE(TZ) *out, int64_t out_start,
                                                 TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *terms,
                                                 int32_t numbers, int32_t row_tiles, int32_t length) {
  TF_SHARED tf_part left[TILE_LEFT];
  TF_SHARED tf_part right[TILE_RIGHT];
  TF_SHARED int32_t positions[3 * PIXELS];
  TF_SHARED int64_t sources[PIXELS];
  TF_GLOBAL const int32_t *phase = sizes + PHASES;
  const int32_t tile = (int32_t)tf_group_id(0), columns = sizes[GROUP_COLUMNS], groups = sizes[GROUPS];
  const int32_t row = tile % row_tiles * TILE_ROWS, column = tile / row_tiles * TILE_COLUMNS;
  const int32_t rows = phase[TERM_COUNT], pitch = sizes[TARGET_CHANNELS];
  const int32_t pixels = sizes[BATCH] * phase[COUNT_DEPTH] * phase[COUNT_HEIGHT] * phase[COUNT_WIDTH];
  for (int32_t number = (int32_t)tf_group_id(2); number < numbers; number += (int32_t)tf_group_count(2)) {
    const int32_t group = number % groups, part = number / groups, first = part * length;
    const int32_t end = pixels - first < length ? pixels : first + length;
    tf_part sums[EACH_ROW][EACH_COLUMN];
    tf_clear_sums(sums);
    for (int32_t k = first; k < end; k += DEPTH) {
      tf_find_pixels(sizes, phase, k, end, positions, sources);
      tf_barrier();
      tf_gather_tile(image + image_start + group * sizes[GROUP_CHANNELS], sizes, terms + row, positions, sources, left);
      TF_LOAD_TILE(T, gradient + gradient_start + (int64_t)k * pitch + group * columns + column, pitch, end - k,
                   columns - column, right, DEPTH, TILE_COLUMNS, RIGHT_PITCH, 1);
      tf_barrier();
      tf_add_tiles(left, right, sums);
    }
    TF_STORE_SUMS(TZ, out + out_start + ((int64_t)part * rows + row) * pitch + group * columns + column, pitch,
                  rows - row, columns - column, sums);
  }
}

#endif
