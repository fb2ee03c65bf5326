/* Depthwise convolutions, and their gradients. T: dtype of the tensors, PART: in which products are added, TZ: dtype of
 * the sums that tf_depthwise_filter writes; SINGLE: whether the multiplier is 1; LANES: see taps.h. */
#include <timberframe/accelerator/taps.h>

typedef TF_VALUE(PART) tf_part;

#define tf_add_product_float32(x, y, sum) tf_fused_f32(x, y, sum)
#define tf_add_product_float64(x, y, sum) tf_fused_f64(x, y, sum)
#define TF_ADD_PRODUCT(dtype, x, y, sum) TF_JOIN2(add_product, dtype)(x, y, sum)

TF_KERNEL tf_depthwise(TF_GLOBAL const TF_STORAGE(T) *x, int64_t x_start, TF_GLOBAL const TF_STORAGE(T) *filter,
                       TF_GLOBAL TF_STORAGE(T) *y, int64_t y_start, TF_GLOBAL const int32_t *s, int32_t pixels) {
  const int32_t width = s[CHANNELS] * s[MULTIPLIER];
  EACH_LINE(number, pixels) {
    const tf_pixel pixel = tf_pixel_of(number, s[OUT_HEIGHT], s[OUT_WIDTH]);
    EACH_CHANNEL(first, width) {
      tf_part sum = 0;
      for (int32_t i = 0; i < s[KERNEL_HEIGHT]; i++) {
        for (int32_t j = 0; j < s[KERNEL_WIDTH]; j++) {
          const int32_t from = tf_input_pixel(s, pixel, i, j);
          if (from < 0) continue;
          TF_GLOBAL const TF_STORAGE(T) *line = x + x_start + (int64_t)from * s[CHANNELS];
          TF_GLOBAL const TF_STORAGE(T) *tap = filter + (int64_t)(i * s[KERNEL_WIDTH] + j) * width + first;
#if SINGLE
          const tf_part value = TF_LOAD(T, line + first, tf_lane());
#else
          const tf_part value = TF_LOAD(T, line, (first + tf_local_id(0)) / s[MULTIPLIER]);
#endif
          sum = TF_ADD_PRODUCT(PART, value, (tf_part)TF_LOAD(T, tap, tf_lane()), sum);
        }
      }
      TF_STORE(T, y + y_start + (int64_t)number * width + first, tf_lane(), sum);
    }
  }
}

TF_KERNEL tf_depthwise_input(TF_GLOBAL const TF_STORAGE(T) *filter, TF_GLOBAL const TF_STORAGE(T) *gradient,
                             int64_t gradient_start, TF_GLOBAL TF_STORAGE(T) *x, int64_t x_start,
                             TF_GLOBAL const int32_t *s, int32_t pixels) {
  const int32_t channels = s[CHANNELS], multiplier = SINGLE ? 1 : s[MULTIPLIER];
  EACH_LINE(number, pixels) {
    const tf_pixel pixel = tf_pixel_of(number, s[HEIGHT], s[WIDTH]);
    EACH_CHANNEL(first, channels) {
      tf_part sum = 0;
      for (int32_t i = 0; i < s[KERNEL_HEIGHT]; i++) {
        for (int32_t j = 0; j < s[KERNEL_WIDTH]; j++) {
          const int32_t from = tf_output_pixel(s, pixel, i, j);
          if (from < 0) continue;
          TF_GLOBAL const TF_STORAGE(T) *line =
              gradient + gradient_start + ((int64_t)from * channels + first) * multiplier;
          TF_GLOBAL const TF_STORAGE(T) *tap =
              filter + ((int64_t)(i * s[KERNEL_WIDTH] + j) * channels + first) * multiplier;
          for (int32_t m = 0; m < multiplier; m++) {
            const tf_part weight = TF_LOAD(T, tap, tf_lane() * multiplier + m);
            sum = TF_ADD_PRODUCT(PART, weight, (tf_part)TF_LOAD(T, line, tf_lane() * multiplier + m), sum);
          }
        }
      }
      TF_STORE(T, x + x_start + (int64_t)number * channels + first, tf_lane(), sum);
    }
  }
}

/* Lines are taps. The pixels are cut into parts of `length`, whose sums lie one after the other. */
TF_KERNEL tf_depthwise_filter(TF_GLOBAL const TF_STORAGE(T) *x, int64_t x_start,
                              TF_GLOBAL const TF_STORAGE(T) *gradient, int64_t gradient_start,
                              TF_GLOBAL TF_STORAGE(TZ) *out, int64_t out_start, TF_GLOBAL const int32_t *s,
                              int32_t pixels, int32_t length) {
  const int32_t width = s[CHANNELS] * s[MULTIPLIER], taps = s[KERNEL_HEIGHT] * s[KERNEL_WIDTH];
  const int32_t part = (int32_t)tf_group_id(2), start = part * length;
  const int32_t end = pixels - start < length ? pixels : start + length;
  EACH_LINE(tap, taps) {
    EACH_CHANNEL(first, width) {
      tf_part sum = 0;
      for (int32_t number = start; number < end; number++) {
        const tf_pixel pixel = tf_pixel_of(number, s[OUT_HEIGHT], s[OUT_WIDTH]);
        const int32_t from = tf_input_pixel(s, pixel, tap / s[KERNEL_WIDTH], tap % s[KERNEL_WIDTH]);
        if (from < 0) continue;
        TF_GLOBAL const TF_STORAGE(T) *line = x + x_start + (int64_t)from * s[CHANNELS];
#if SINGLE
        const tf_part value = TF_LOAD(T, line + first, tf_lane());
#else
        const tf_part value = TF_LOAD(T, line, (first + tf_local_id(0)) / s[MULTIPLIER]);
#endif
        const tf_part slope = TF_LOAD(T, gradient + gradient_start + (int64_t)number * width + first, tf_lane());
        sum = TF_ADD_PRODUCT(PART, value, slope, sum);
      }
      TF_STORE(TZ, out + out_start + ((int64_t)part * taps + tap) * width + first, tf_lane(), sum);
    }
  }
}
