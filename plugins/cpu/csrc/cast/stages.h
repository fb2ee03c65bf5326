/* The steps that conversions between dtypes are made of: each converts `count` elements. */
#ifndef TIMBERFRAME_CPU_CAST_STAGES_H
#define TIMBERFRAME_CPU_CAST_STAGES_H

#include <math.h>

#include <timberframe/math/convert.h>

#include "common/complex_numbers.h"
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

/* Floats to integers. */
#define FROM_FLOAT(type, S)                                                                                          \
  STAGE(type##_uint8, S, uint8_t, TF_INT32_OF(x))                                                                    \
  STAGE(type##_uint16, S, uint16_t, TF_INT32_OF(x))                                                                  \
  STAGE(type##_int32, S, int32_t, TF_INT32_OF(x))                                                                    \
  STAGE(type##_uint32, S, uint32_t, TF_INT64_OF(x))                                                                  \
  STAGE(type##_int64, S, int64_t, TF_INT64_OF(x))                                                                    \
  STAGE(type##_uint64, S, uint64_t, TF_UINT64_OF(x))                                                                 \
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

STAGE(float64_odd, double, float, tf_odd_float(x))

STAGE(cut_float32_13, float, float, tf_cut_f32(x, 13))
STAGE(cut_float32_16, float, float, tf_cut_f32(x, 16))
STAGE(cut_float64_29, double, double, tf_cut_f64(x, 29))
STAGE(cut_float64_42, double, double, tf_cut_f64(x, 42))
STAGE(cut_float64_45, double, double, tf_cut_f64(x, 45))

#endif
