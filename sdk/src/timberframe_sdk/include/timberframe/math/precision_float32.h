/* The names and constants that exponential.h and trigonometric.h take for float32. */
#ifndef TIMBERFRAME_MATH_PRECISION_FLOAT32_H
#define TIMBERFRAME_MATH_PRECISION_FLOAT32_H

#include <timberframe/math/bits.h>
#include <timberframe/math/polynomials_float32.h>

#define TF_F(name) tf_##name##_f32
#define TF_REAL float
#define TF_SIGNED int32_t
#define TF_UNSIGNED uint32_t
#define TF_SQRT tf_root_f32

#define TF_MANTISSA 23
#define TF_MANTISSA_BITS 0x7fffff
#define TF_SIGN_BIT 31
#define TF_ONE_BITS 0x3f800000
#define TF_ROOT_HALF_BITS 0x3f3504f3
#define TF_ROUNDER TF_ROUNDER32
#define TF_UNIT 0x1p23f
#define TF_SMALLEST_NORMAL 0x1p-126f
#define TF_INFINITY TF_INFINITY32
#define TF_NAN TF_NAN32

#define TF_LOG2E 0x1.715476p+0f
#define TF_LN2_HIGH 0x1.62e4p-1f /* 15 bits: its products with n are exact */
#define TF_LN2_LOW 0x1.7f7d1cp-20f
#define TF_LN2 0x1.62e43p-1f
#define TF_EXP_LOWEST -104.5f /* below, exp gives 0; above TF_EXP_HIGHEST infinity */
#define TF_EXP_HIGHEST 89.0f
#define TF_EXPM1_LOWEST -18.0f /* below, expm1 gives -1 */
#define TF_SINH_HIGHEST 0x1.65a9f8p+6f /* the last argument whose sinh and cosh are finite */
#define TF_LOG_2X 0x1p13f /* above, asinh(x) and acosh(x) are log(2x): the next term is 1 / (4 x^2) */
#define TF_HUGE 0x1p100f /* above, log1p(x) is log(x) even of 2^-64 x */

#define TF_HALF_PI 0x1.921fb6p+0f /* three parts of 24 bits */
#define TF_HALF_PI_LOW -0x1.777a5cp-25f
#define TF_HALF_PI_LOWEST -0x1.ee59dap-50f
#define TF_TAN_PI_8 0x1.a8279ap-2f
#define TF_TAN_3PI_8 0x1.3504f4p+1f

/* The exponent of a number whose bits were lowered by TF_ROOT_HALF_BITS. */
static inline float tf_exponent_f32(int32_t offset) {
  return (float)(offset >> TF_MANTISSA);
}

#endif
