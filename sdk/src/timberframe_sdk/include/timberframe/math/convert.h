/* Floats to integers and to narrower floats. Out of range, a float becomes what x86's conversion to int32 (int64 for
 * uint32 and int64) gives, cut to the integer's size; nothing has undefined results. x is a variable. */
#ifndef TIMBERFRAME_MATH_CONVERT_H
#define TIMBERFRAME_MATH_CONVERT_H

#include <timberframe/math/bits.h>

/* A uint64 above int64's range is converted less 2^63, which the last step puts back as the top bit. */
#define TF_INT32_OF(x) ((int32_t)(x >= -0x1p31f && x < 0x1p31f ? x : -0x1p31f))
#define TF_INT64_OF(x) ((int64_t)(x >= -0x1p63f && x < 0x1p63f ? x : -0x1p63f))
#define TF_IS_LARGE(x) (x >= 0x1p63f && x < 0x1p64f)
#define TF_UINT64_OF(x)                                                                                              \
  (TF_IS_LARGE(x) ? (uint64_t)TF_INT64_OF((x - 0x1p63f)) ^ (uint64_t)1 << 63 : (uint64_t)TF_INT64_OF(x))

/* Truncate: the last `bits` bits of the fraction become 0; NaN stays. The mask is chosen rather than the result: GCC 12
 * drops the mask of 0xffff0000 from a loop's remainder otherwise. */
static inline float tf_cut_f32(float x, uint32_t bits) {
  const uint32_t mask = x != x ? 0xffffffffu : 0xffffffffu << bits;
  return tf_f32_of_bits((int32_t)((uint32_t)tf_bits_of_f32(x) & mask));
}

#ifndef TF_NO_FLOAT64
static inline double tf_cut_f64(double x, uint32_t bits) {
  const uint64_t all = ~(uint64_t)0, mask = x != x ? all : all << bits;
  return tf_f64_of_bits((int64_t)((uint64_t)tf_bits_of_f64(x) & mask));
}

/* A double as the float next to it towards zero, with the last bit set where that is inexact ("rounding to odd"):
 * rounding this to a half gives what rounding the double once would. Values beyond the floats stay beyond the
 * halves. */
static inline float tf_odd_float(double x) {
  const float closest = (float)x;
  const uint32_t bits = (uint32_t)tf_bits_of_f32(closest);
  const uint32_t below = tf_abs_f64((double)closest) > tf_abs_f64(x) ? bits - 1 : bits;
  return (double)closest == x || x != x ? closest : tf_f32_of_bits((int32_t)(below | 1));
}
#endif

#endif
