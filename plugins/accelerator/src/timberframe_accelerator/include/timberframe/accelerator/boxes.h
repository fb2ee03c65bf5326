/* Parts of images [batch, height, width, channels]. T: dtype. */
#include <timberframe/accelerator/language.h>

/* Where a window of `wanted` pixels begins along a dimension of `size`. */
static inline int64_t tf_window_start(float coordinate, tf_index size, tf_index wanted, int32_t normalized,
                                      int32_t centered) {
  float at = normalized ? coordinate * (float)size : coordinate;
  if (centered) at = at / 2 + (float)size / 2 - (float)wanted / 2;
  return (int64_t)at;
}

/* A window of each image; zero outside. Reason 1: a window leaves its image, and noise was asked for. */
TF_KERNEL tf_extract_glimpse(TF_GLOBAL const float *in, TF_GLOBAL const float *offsets, TF_GLOBAL float *out,
                             TF_GLOBAL int64_t *status, int64_t node, tf_index rows, tf_index height, tf_index width,
                             tf_index channels, tf_index out_height, tf_index out_width, int32_t normalized,
                             int32_t centered, int32_t noise) {
  TF_EACH_ROW(row, rows) {
    const tf_index image = row / out_height;
    const int64_t top = tf_window_start(offsets[2 * image], height, out_height, normalized, centered);
    const int64_t left = tf_window_start(offsets[2 * image + 1], width, out_width, normalized, centered);
    const int64_t y = top + row % out_height;
    TF_EACH(at, out_width * channels) {
      const int64_t x = left + at / channels;
      const int inside = y >= 0 && y < height && x >= 0 && x < width;
      if (!inside && noise) tf_report(status, node, 1, 0, 0, 0);
      const int64_t from = ((image * height + y) * width + x) * channels + at % channels;
      out[row * out_width * channels + at] = inside ? in[from] : 0;
    }
  }
}

/* The last of an image's boxes whose outline covers a pixel gives its colour. boxes: top, left, bottom and right in
 * parts of the size; palette: `colors` rows of `parts`. */
TF_KERNEL tf_draw_boxes(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const float *boxes,
                        TF_GLOBAL const float *palette, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, tf_index height,
                        tf_index width, int32_t channels, tf_index count, tf_index colors, tf_index parts) {
  TF_EACH_ROW(row, rows) {
    const tf_index image = row / height, y = row - image * height;
    TF_EACH(at, width * channels) {
      const tf_index x = at / channels;
      const int32_t c = (int32_t)(at - x * channels);
      tf_index last = -1;
      for (tf_index k = 0; k < count; k++) {
        TF_GLOBAL const float *box = boxes + (image * count + k) * 4;
        const int64_t top = (int64_t)(box[0] * (float)(height - 1)), bottom = (int64_t)(box[2] * (float)(height - 1));
        const int64_t left = (int64_t)(box[1] * (float)(width - 1)), right = (int64_t)(box[3] * (float)(width - 1));
        if (y < top || y > bottom || x < left || x > right) continue;
        if (y == top || y == bottom || x == left || x == right) last = k;
      }
      if (last < 0) out[row * width * channels + at] = in[row * width * channels + at];
      else
        TF_STORE(T, out, row * width * channels + at,
                 channels == 1 ? 1 : (TF_VALUE(T))palette[last % colors * parts + c]);
    }
  }
}
