/* Grayscale dilation, and its gradients. T: dtype of the tensors, PART: in which gradients are added (unsigned for
 * integers), TZ: dtype of the sums that tf_dilation_filter writes; LANES: see taps.h. */
#include <timberframe/accelerator/taps.h>

typedef TF_VALUE(T) tf_element;
typedef TF_VALUE(PART) tf_part;

/* Sums as they are in T: rounded, or wrapped. */
#define tf_sum_float32(a, b) ((a) + (b))
#define tf_sum_float64(a, b) ((a) + (b))
#define tf_sum_float16(a, b) tf_float32_from_float16(tf_float16_from_float32((a) + (b)))
#define tf_sum_bfloat16(a, b) tf_float32_from_bfloat16(tf_bfloat16_from_float32((a) + (b)))
#define TF_WRAPPED_SUM(T, U, a, b) ((T)(U)((U)(a) + (U)(b)))
#define tf_sum_int8(a, b) TF_WRAPPED_SUM(int8_t, uint8_t, a, b)
#define tf_sum_int16(a, b) TF_WRAPPED_SUM(int16_t, uint16_t, a, b)
#define tf_sum_int32(a, b) TF_WRAPPED_SUM(int32_t, uint32_t, a, b)
#define tf_sum_int64(a, b) TF_WRAPPED_SUM(int64_t, uint64_t, a, b)
#define tf_sum_uint8(a, b) TF_WRAPPED_SUM(uint8_t, uint8_t, a, b)
#define tf_sum_uint16(a, b) TF_WRAPPED_SUM(uint16_t, uint16_t, a, b)
#define tf_sum_uint32(a, b) ((a) + (b))
#define tf_sum_uint64(a, b) ((a) + (b))
#define TF_SUM(dtype, a, b) TF_JOIN2(sum, dtype)(a, b)

#define tf_lowest_float32 -3.4028234663852886e38f
#define tf_lowest_float64 -1.7976931348623157e308
#define tf_lowest_float16 -65504.0f
#define tf_lowest_bfloat16 -3.3895313892515355e38f
#define tf_lowest_int8 -128
#define tf_lowest_int16 -32768
#define tf_lowest_int32 INT32_MIN
#define tf_lowest_int64 INT64_MIN
#define tf_lowest_uint8 0
#define tf_lowest_uint16 0
#define tf_lowest_uint32 0
#define tf_lowest_uint64 0
#define TF_LOWEST(dtype) TF_JOIN2(lowest, dtype)

/* The largest sum at an output's pixel, and in *tap the number of the first tap that gives it: the first inside the
 * image where no sum is above the lowest number, -1 where none is inside. A comparison with NaN is false. */
static inline tf_element tf_largest(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(T) *filter,
                                    TF_GLOBAL const int32_t *s, tf_pixel pixel, int32_t first, int32_t *tap) {
  tf_element best = TF_LOWEST(T);
  *tap = -1;
  for (int32_t i = 0; i < s[KERNEL_HEIGHT]; i++) {
    for (int32_t j = 0; j < s[KERNEL_WIDTH]; j++) {
      const int32_t from = tf_input_pixel(s, pixel, i, j), number = i * s[KERNEL_WIDTH] + j;
      if (from < 0) continue;
      const tf_element value = TF_LOAD(T, x + (int64_t)from * s[CHANNELS] + first, tf_lane());
      const tf_element weight = TF_LOAD(T, filter + (int64_t)number * s[CHANNELS] + first, tf_lane());
      const tf_element sum = TF_SUM(T, value, weight);
      if (sum > best || *tap < 0) *tap = number;
      if (sum > best) best = sum;
    }
  }
  return best;
}

TF_KERNEL tf_dilation(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(T) *filter,
                      TF_GLOBAL TF_STORAGE(T) *y, TF_GLOBAL const int32_t *s, int32_t pixels) {
  EACH_LINE(number, pixels) {
    const tf_pixel pixel = tf_pixel_of(number, s[OUT_HEIGHT], s[OUT_WIDTH]);
    EACH_CHANNEL(first, s[CHANNELS]) {
      int32_t tap;
      const tf_element best = tf_largest(x, filter, s, pixel, first, &tap);
      TF_STORE(T, y + (int64_t)number * s[CHANNELS] + first, tf_lane(), best);
    }
  }
}

/* The tap of each output, for the gradients. */
TF_KERNEL tf_dilation_taps(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(T) *filter,
                           TF_GLOBAL int32_t *taps, int64_t taps_start, TF_GLOBAL const int32_t *s,
                           int32_t pixels) {
  EACH_LINE(number, pixels) {
    const tf_pixel pixel = tf_pixel_of(number, s[OUT_HEIGHT], s[OUT_WIDTH]);
    EACH_CHANNEL(first, s[CHANNELS]) {
      int32_t tap;
      tf_largest(x, filter, s, pixel, first, &tap);
      (taps + taps_start + (int64_t)number * s[CHANNELS] + first)[tf_lane()] = tap;
    }
  }
}

TF_KERNEL tf_dilation_input(TF_GLOBAL const int32_t *taps, int64_t taps_start,
                            TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL TF_STORAGE(T) *out,
                            TF_GLOBAL const int32_t *s, int32_t pixels) {
  EACH_LINE(number, pixels) {
    const tf_pixel pixel = tf_pixel_of(number, s[HEIGHT], s[WIDTH]);
    EACH_CHANNEL(first, s[CHANNELS]) {
      tf_part sum = 0;
      for (int32_t i = 0; i < s[KERNEL_HEIGHT]; i++) {
        for (int32_t j = 0; j < s[KERNEL_WIDTH]; j++) {
          const int32_t from = tf_output_pixel(s, pixel, i, j);
          if (from < 0) continue;
          const int64_t at = (int64_t)from * s[CHANNELS] + first;
          if ((taps + taps_start + at)[tf_lane()] == i * s[KERNEL_WIDTH] + j)
            sum += (tf_part)TF_LOAD(T, gradient + at, tf_lane());
        }
      }
      TF_STORE(T, out + (int64_t)number * s[CHANNELS] + first, tf_lane(), (tf_element)sum);
    }
  }
}

/* Lines are taps. The pixels are cut into parts of `length`, whose sums lie one after the other. */
TF_KERNEL tf_dilation_filter(TF_GLOBAL const int32_t *taps, int64_t taps_start,
                             TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL TF_STORAGE(TZ) *out,
                             int64_t out_start, TF_GLOBAL const int32_t *s, int32_t pixels, int32_t length) {
  const int32_t part = (int32_t)tf_group_id(2), start = part * length, count = s[KERNEL_HEIGHT] * s[KERNEL_WIDTH];
  const int32_t end = pixels - start < length ? pixels : start + length;
  EACH_LINE(tap, count) {
    EACH_CHANNEL(first, s[CHANNELS]) {
      tf_part sum = 0;
      for (int32_t number = start; number < end; number++) {
        const int64_t at = (int64_t)number * s[CHANNELS] + first;
        if ((taps + taps_start + at)[tf_lane()] == tap) sum += (tf_part)TF_LOAD(T, gradient + at, tf_lane());
      }
      TF_STORE(TZ, out + out_start + ((int64_t)part * count + tap) * s[CHANNELS] + first, tf_lane(), (TF_VALUE(TZ))sum);
    }
  }
}
