/* Truncated quotients of floating-point numbers; and remainders, exact as C's fmod, with the dividend's sign and with
 * the divisor's. */
#ifndef TIMBERFRAME_MATH_REMAINDER_H
#define TIMBERFRAME_MATH_REMAINDER_H

#include <timberframe/math/library.h>
#include <timberframe/math/rounding.h>

#define TF_REMAINDERS(type, suffix)                                                                                  \
  static inline type tf_truncate_div_##suffix(type x, type y) {                                                      \
    const type q = x / y;                                                                                            \
    return tf_copy_sign_##suffix(tf_floor_##suffix(tf_abs_##suffix(q)), q);                                          \
  }                                                                                                                  \
  static inline type tf_truncate_mod_##suffix(type x, type y) { return fmod(x, y); }                                 \
  static inline type tf_floor_mod_##suffix(type x, type y) {                                                         \
    const type r = fmod(x, y);                                                                                       \
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                                                 \
  }
TF_REMAINDERS(float, f32)
#ifndef TF_NO_FLOAT64
TF_REMAINDERS(double, f64)
#endif

#endif
