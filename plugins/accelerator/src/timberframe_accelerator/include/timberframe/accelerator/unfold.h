/* Images unfolded into matrices: a row for each pixel, of the elements that its window covers.
 *
 * T: an unsigned integer as wide as what is moved at once; channels in sizes and terms (see pixels.h) are so wide. */
#include <timberframe/accelerator/pixels.h>

/* The rows of `pixels` pixels from `first` on, those of each group of channels after the other's; zeros outside. */
TF_KERNEL tf_unfold(TF_GLOBAL const TF_STORAGE(T) *image, int64_t image_start, TF_GLOBAL TF_STORAGE(T) *out,
                    int64_t out_start, TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *terms, int32_t first,
                    int32_t pixels) {
  TF_GLOBAL const int32_t *phase = sizes + PHASES;
  const int32_t count = sizes[TERMS];
  TF_EACH_ROW(number, pixels * sizes[GROUPS]) {
    const int32_t group = number / pixels, pixel = first + number - group * pixels;
    const int32_t row = QUOTIENT(pixel, WIDTH), x = (pixel - row * phase[COUNT_WIDTH]) * sizes[STEP_WIDTH];
    const int32_t plane = QUOTIENT(row, HEIGHT), y = (row - plane * phase[COUNT_HEIGHT]) * sizes[STEP_HEIGHT];
    const int32_t image_number = QUOTIENT(plane, DEPTH);
    const int32_t position[3] = {(plane - image_number * phase[COUNT_DEPTH]) * sizes[STEP_DEPTH], y, x};
    const int64_t line = ((int64_t)image_number * sizes[SOURCE_DEPTH] + position[0]) * sizes[SOURCE_HEIGHT] + y;
    TF_GLOBAL const TF_STORAGE(T) *from = image + image_start + group * sizes[GROUP_CHANNELS];
    from += (line * sizes[SOURCE_WIDTH] + x) * sizes[SOURCE_CHANNELS];
    TF_GLOBAL TF_STORAGE(T) *to = out + out_start + (int64_t)number * count;
    TF_EACH(k, count) {
      TF_GLOBAL const int32_t *term = terms + k;
      const int inside = IS_INSIDE(sizes, position, term[0], term[count], term[2 * count]);
      to[k] = inside ? from[term[3 * count]] : (TF_STORAGE(T))0;
    }
  }
}

/* Rows of channels go to `pixels` pixels of a phase of the target, from `first` on; where it meets no tap, zeros. */
TF_KERNEL tf_place(TF_GLOBAL const TF_STORAGE(T) *rows, int64_t rows_start, TF_GLOBAL TF_STORAGE(T) *out,
                   int64_t out_start, TF_GLOBAL const int32_t *sizes, int32_t first, int32_t pixels) {
  TF_GLOBAL const int32_t *phase = sizes + PHASES;
  const int32_t channels = sizes[TARGET_CHANNELS], met = phase[TERM_COUNT];
  TF_EACH_ROW(row, pixels) {
    TF_GLOBAL TF_STORAGE(T) *to = out + out_start + tf_target_offset(sizes, phase, first + row);
    TF_GLOBAL const TF_STORAGE(T) *from = rows + rows_start + (int64_t)row * channels;
    TF_EACH(k, channels) to[k] = met ? from[k] : (TF_STORAGE(T))0;
  }
}
