/* Values brought below an upper bound and then above a lower one; a bound that is NaN is none. */
#include "common/streaming.h"

#include "common/broadcast_half.h"
#include "common/complex_numbers.h"

#define CLIP_VALUE(T)                                                                                                \
  static inline T clip_value_##T(T x, T low, T high) {                                                               \
    const T below = x > high ? high : x;                                                                             \
    return below < low ? low : below;                                                                                \
  }
typedef float _Complex c64;
typedef double _Complex c128;
CLIP_VALUE(float)
CLIP_VALUE(double)
CLIP_VALUE(int8_t)
CLIP_VALUE(int16_t)
CLIP_VALUE(int32_t)
CLIP_VALUE(int64_t)
CLIP_VALUE(uint8_t)
CLIP_VALUE(uint16_t)

static inline c64 clip_value_c64(c64 x, c64 low, c64 high) {
  return CMPLXF(clip_value_float(crealf(x), crealf(low), crealf(high)),
                clip_value_float(cimagf(x), cimagf(low), cimagf(high)));
}

static inline c128 clip_value_c128(c128 x, c128 low, c128 high) {
  return CMPLX(clip_value_double(creal(x), creal(low), creal(high)),
               clip_value_double(cimag(x), cimag(low), cimag(high)));
}

/* x has every element of the output, so its step is 1; each bound has, or is a scalar. */
#define CLIP(type, T)                                                                                                \
  static TF_NOINLINE void clip_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) { \
    const T *x = in[0], *low = in[1], *high = in[2];                                                                 \
    T *z = out;                                                                                                      \
    const T least = *low, most = *high;                                                                              \
    if (step[1] && step[2]) {                                                                                        \
      TF_VECTOR for (int64_t i = 0; i < count; i++) z[i] = clip_value_##T(x[i], low[i], high[i]);                    \
    } else if (step[1]) {                                                                                            \
      TF_VECTOR for (int64_t i = 0; i < count; i++) z[i] = clip_value_##T(x[i], low[i], most);                       \
    } else if (step[2]) {                                                                                            \
      TF_VECTOR for (int64_t i = 0; i < count; i++) z[i] = clip_value_##T(x[i], least, high[i]);                     \
    } else {                                                                                                         \
      TF_VECTOR for (int64_t i = 0; i < count; i++) z[i] = clip_value_##T(x[i], least, most);                        \
    }                                                                                                                \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(clip_##type, 3)

#define CLIP_HALF(type)                                                                                              \
  static TF_NOINLINE void clip_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) { \
    tf_half_loop(count, in, step, out, 3, 7, clip_float32_loop, tf_float32_from_##type##_n,                          \
                 tf_##type##_from_float32_n);                                                                        \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(clip_##type, 3)

CLIP(float32, float)
CLIP(float64, double)
CLIP(int8, int8_t)
CLIP(int16, int16_t)
CLIP(int32, int32_t)
CLIP(int64, int64_t)
CLIP(uint8, uint8_t)
CLIP(uint16, uint16_t)
CLIP(complex64, c64)
CLIP(complex128, c128)
CLIP_HALF(float16)
CLIP_HALF(bfloat16)

TF_TABLE(select_clip) = {
    TF_ENTRY(clip_float32),   TF_ENTRY(clip_float64),    TF_ENTRY(clip_int8),    TF_ENTRY(clip_int16),
    TF_ENTRY(clip_int32),     TF_ENTRY(clip_int64),      TF_ENTRY(clip_uint8),   TF_ENTRY(clip_uint16),
    TF_ENTRY(clip_complex64), TF_ENTRY(clip_complex128), TF_ENTRY(clip_float16), TF_ENTRY(clip_bfloat16),
    TF_END,
};
