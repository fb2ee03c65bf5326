/* Rounding to integers, by the processor's instruction where it has one. */
#ifndef TIMBERFRAME_MATH_ROUNDING_H
#define TIMBERFRAME_MATH_ROUNDING_H

#include <timberframe/math/bits.h>

#if defined(tf_floor_f32)
/* the language has it */
#elif defined(__SSE4_1__) || defined(__aarch64__)
#define tf_floor_f32 __builtin_floorf
#define tf_ceil_f32 __builtin_ceilf
#define tf_rint_f32 __builtin_rintf
#define tf_floor_f64 __builtin_floor
#define tf_ceil_f64 __builtin_ceil
#define tf_rint_f64 __builtin_rint
#else
/* Without an instruction for it: adding the number whose unit is 1 rounds to an integer; beyond it all are integers. */
#define TF_DEFINE_ROUNDING(bits, type, unit)                                                                       \
  static inline type tf_rint_f##bits(type x) {                                                                     \
    type a = tf_abs_f##bits(x);                                                                                    \
    return a < unit ? tf_with_sign_f##bits((a + unit) - unit, x) : x;                                              \
  }                                                                                                                \
  static inline type tf_floor_f##bits(type x) {                                                                    \
    type y = tf_rint_f##bits(x);                                                                                   \
    return y > x ? y - 1 : y;                                                                                      \
  }                                                                                                                \
  static inline type tf_ceil_f##bits(type x) {                                                                     \
    type y = tf_rint_f##bits(x);                                                                                   \
    return y < x ? tf_with_sign_f##bits(y + 1, x) : y;                                                             \
  }
TF_DEFINE_ROUNDING(32, float, 0x1p23f)
TF_DEFINE_ROUNDING(64, double, 0x1p52)
#endif

#endif
