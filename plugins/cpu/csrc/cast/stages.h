/* The steps that conversions between dtypes are made of: each converts `count` elements. Out of range, a float
 * becomes what x86's conversion to int32 (int64 for uint32 and int64) gives, cut to the integer's size; no step
 * has undefined results. */
#ifndef TIMBERFRAME_CPU_CAST_STAGES_H
#define TIMBERFRAME_CPU_CAST_STAGES_H

#include <complex.h>
#include <math.h>

#include "common/broadcast.h"
#include "common/half.h"

typedef void cast_stage(int64_t count, const void *in, void *out);

#define STAGE(name, S, D, expression)                                                                                \
  static TF_NOINLINE void name(int64_t count, const void *in, void *out) {                                           \
    const S *from = in;                                                                                              \
    D *to = out;                                                                                                     \
    TF_VECTOR for (int64_t i = 0; i < count; i++) {                                                                  \
      const S x = from[i];                                                                                           \
      to[i] = (D)(expression);                                                                                       \
    }                                                                                                                \
  }

/* Integers to integers, where the size changes, and to floats. */
#define INTEGER(name, S, D) STAGE(name, S, D, x)
INTEGER(int8_uint16, int8_t, uint16_t)
INTEGER(int8_uint32, int8_t, uint32_t)
INTEGER(int8_uint64, int8_t, uint64_t)
INTEGER(int16_uint32, int16_t, uint32_t)
INTEGER(int16_uint64, int16_t, uint64_t)
INTEGER(int32_uint64, int32_t, uint64_t)
INTEGER(uint8_uint16, uint8_t, uint16_t)
INTEGER(uint8_uint32, uint8_t, uint32_t)
INTEGER(uint8_uint64, uint8_t, uint64_t)
INTEGER(uint16_uint8, uint16_t, uint8_t)
INTEGER(uint16_uint32, uint16_t, uint32_t)
INTEGER(uint16_uint64, uint16_t, uint64_t)
INTEGER(uint32_uint8, uint32_t, uint8_t)
INTEGER(uint32_uint16, uint32_t, uint16_t)
INTEGER(uint32_uint64, uint32_t, uint64_t)
INTEGER(uint64_uint8, uint64_t, uint8_t)
INTEGER(uint64_uint16, uint64_t, uint16_t)
INTEGER(uint64_uint32, uint64_t, uint32_t)
#define TO_FLOATS(type, S) INTEGER(type##_float32, S, float) INTEGER(type##_float64, S, double)
TO_FLOATS(int8, int8_t)
TO_FLOATS(int16, int16_t)
TO_FLOATS(int32, int32_t)
TO_FLOATS(int64, int64_t)
TO_FLOATS(uint8, uint8_t)
TO_FLOATS(uint16, uint16_t)
TO_FLOATS(uint32, uint32_t)
TO_FLOATS(uint64, uint64_t)

/* Floats to integers. A uint64 above int64's range is converted less 2^63, which the last step puts back as the
 * top bit. */
#define INT32_OF(x) ((int32_t)(x >= -0x1p31f && x < 0x1p31f ? x : -0x1p31f))
#define INT64_OF(x) ((int64_t)(x >= -0x1p63f && x < 0x1p63f ? x : -0x1p63f))
#define IS_LARGE(x) (x >= 0x1p63f && x < 0x1p64f)
#define UINT64_OF(x) (IS_LARGE(x) ? (uint64_t)INT64_OF((x - 0x1p63f)) ^ 1ull << 63 : (uint64_t)INT64_OF(x))
#define FROM_FLOAT(type, S)                                                                                          \
  STAGE(type##_uint8, S, uint8_t, INT32_OF(x))                                                                       \
  STAGE(type##_uint16, S, uint16_t, INT32_OF(x))                                                                     \
  STAGE(type##_int32, S, int32_t, INT32_OF(x))                                                                       \
  STAGE(type##_uint32, S, uint32_t, INT64_OF(x))                                                                     \
  STAGE(type##_int64, S, int64_t, INT64_OF(x))                                                                       \
  STAGE(type##_uint64, S, uint64_t, UINT64_OF(x))                                                                    \
  STAGE(type##_bool, S, uint8_t, x != 0)
FROM_FLOAT(float32, float)
FROM_FLOAT(float64, double)

STAGE(float32_float64, float, double, x)
STAGE(float64_float32, double, float, x)

STAGE(uint8_bool, uint8_t, uint8_t, x != 0)
STAGE(uint16_bool, uint16_t, uint8_t, x != 0)
STAGE(uint32_bool, uint32_t, uint8_t, x != 0)
STAGE(uint64_bool, uint64_t, uint8_t, x != 0)

STAGE(complex64_float32, float _Complex, float, crealf(x))
STAGE(complex128_float64, double _Complex, double, creal(x))
STAGE(float32_complex64, float, float _Complex, CMPLXF(x, 0))
STAGE(float64_complex128, double, double _Complex, CMPLX(x, 0))
STAGE(complex64_complex128, float _Complex, double _Complex, CMPLX((double)crealf(x), (double)cimagf(x)))
STAGE(complex128_complex64, double _Complex, float _Complex, CMPLXF((float)creal(x), (float)cimag(x)))

#define HALF_STAGE(name, S, D, function)                                                                             \
  static void name(int64_t count, const void *in, void *out) { function((D *)out, (const S *)in, count); }
HALF_STAGE(float16_float32, tf_float16, float, tf_float32_from_float16_n)
HALF_STAGE(bfloat16_float32, tf_bfloat16, float, tf_float32_from_bfloat16_n)
HALF_STAGE(float32_float16, float, tf_float16, tf_float16_from_float32_n)
HALF_STAGE(float32_bfloat16, float, tf_bfloat16, tf_bfloat16_from_float32_n)

/* A double as the float next to it towards zero, with the last bit set where that is inexact ("rounding to odd"):
 * rounding this to a half gives what rounding the double once would. Values beyond the floats stay beyond the
 * halves. */
static inline float odd_float(double x) {
  const float near = (float)x;
  const uint32_t bits = tf_bits_float32(near);
  const uint32_t below = fabs((double)near) > fabs(x) ? bits - 1 : bits;
  return (double)near == x || x != x ? near : tf_float32_from_bits(below | 1);
}
STAGE(float64_odd, double, float, odd_float(x))

/* Truncate: the last `bits` bits of the fraction become 0; NaN stays. The mask is chosen rather than the result: GCC 12
 * drops the mask of 0xffff0000 from the loop's remainder otherwise. */
static inline float cut_float(float x, uint32_t bits) {
  const uint32_t mask = x != x ? UINT32_MAX : UINT32_MAX << bits;
  return tf_float32_from_bits(tf_bits_float32(x) & mask);
}
static inline double cut_double(double x, uint32_t bits) {
  const uint64_t mask = x != x ? UINT64_MAX : UINT64_MAX << bits;
  uint64_t word;
  memcpy(&word, &x, sizeof word);
  word &= mask;
  double cut;
  memcpy(&cut, &word, sizeof cut);
  return cut;
}
STAGE(cut_float32_13, float, float, cut_float(x, 13))
STAGE(cut_float32_16, float, float, cut_float(x, 16))
STAGE(cut_float64_29, double, double, cut_double(x, 29))
STAGE(cut_float64_42, double, double, cut_double(x, 42))
STAGE(cut_float64_45, double, double, cut_double(x, 45))

#endif
