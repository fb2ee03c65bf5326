/* The names and constants that exponential.h and trigonometric.h take for float64. */
#ifndef TIMBERFRAME_MATH_PRECISION_FLOAT64_H
#define TIMBERFRAME_MATH_PRECISION_FLOAT64_H

#include <timberframe/math/bits.h>
#include <timberframe/math/polynomials_float64.h>

#define TF_F(name) tf_##name##_f64
#define TF_REAL double
#define TF_SIGNED int64_t
#define TF_UNSIGNED uint64_t
#define TF_SQRT tf_root_f64

#define TF_MANTISSA 52
#define TF_MANTISSA_BITS 0xfffffffffffff
#define TF_SIGN_BIT 63
#define TF_ONE_BITS 0x3ff0000000000000
#define TF_ROOT_HALF_BITS 0x3fe6a09e667f3bcd
#define TF_ROUNDER TF_ROUNDER64
#define TF_UNIT 0x1p52
#define TF_SMALLEST_NORMAL 0x1p-1022
#define TF_INFINITY TF_INFINITY64
#define TF_NAN TF_NAN64

#define TF_LOG2E 0x1.71547652b82fep+0
#define TF_LN2_HIGH 0x1.62e42fefa38p-1 /* 42 bits: its products with n are exact */
#define TF_LN2_LOW 0x1.ef35793c7673p-45
#define TF_EXP_LOWEST -746.0 /* below, exp gives 0; above TF_EXP_HIGHEST infinity */
#define TF_EXP_HIGHEST 710.0
#define TF_EXPM1_LOWEST -38.0 /* below, expm1 gives -1 */
#define TF_SINH_HIGHEST 0x1.633ce8fb9f87dp+9 /* the last argument whose sinh and cosh are finite */
#define TF_LOG_2X 0x1p27 /* above, asinh(x) and acosh(x) are log(2x): the next term is 1 / (4 x^2) */
#define TF_HUGE 0x1p1000 /* above, log1p(x) is log(x) even of 2^-64 x */

#define TF_HALF_PI 0x1.921fb54442d18p+0 /* three parts of 53 bits */
#define TF_HALF_PI_LOW 0x1.1a62633145c07p-54
#define TF_HALF_PI_LOWEST -0x1.f1976b7ed8fbcp-110
#define TF_TAN_PI_8 0x1.a827999fcef32p-2
#define TF_TAN_3PI_8 0x1.3504f333f9de6p+1

/* The exponent of a number whose bits were lowered by TF_ROOT_HALF_BITS. It is put below the leading bit of 2^52: a
 * conversion from int64 would keep compilers from making vectors before AVX-512. */
static inline double tf_exponent_f64(int64_t offset) {
  uint64_t biased = ((uint64_t)offset + ((uint64_t)1088 << TF_MANTISSA)) >> TF_MANTISSA;
  return tf_of_int_f64((int64_t)(0x4330000000000000 | biased)) - (0x1p52 + 1088.0);
}

#endif
