/* tanh, erf, roots and activations of float32, one element each; with exponential.h and trigonometric.h these are the
 * functions that hold for every argument. */
#ifndef TIMBERFRAME_MATH_FUNCTIONS_FLOAT32_H
#define TIMBERFRAME_MATH_FUNCTIONS_FLOAT32_H

#include <timberframe/math/precision_float32.h>

#include <timberframe/math/exponential.h>
#include <timberframe/math/reduction_float32.h>

/* With tanh(a / 2) = n / d, tanh(a) = 2 n d / (d^2 + n^2). That is flat where n is near d, so the quotient need be good
 * for small a only, and never above 1. From 9.02 on the result rounds to 1. */
static inline float tf_tanh_f32(float x) {
  float a = tf_abs_f32(x), bounded = 9.02f < a ? 9.02f : a; /* a NaN stays */
  float square = bounded * bounded;
  float n = tf_fma_f32(bounded * square, tf_tanh_numerator_f32(square), bounded);
  float d = tf_fma_f32(square, tf_tanh_denominator_f32(square), 2.0f);
  return tf_with_sign_f32((n + n) * d / tf_fma_f32(d, d, n * n), x);
}

/* erf(x) = 1 - exp(log(erfc(x))): the polynomial is that logarithm, so that expm1 keeps the digits near 0. */
static inline float tf_erf_f32(float x) {
  float a = tf_abs_f32(x);
  a = a > 4.0f ? 4.0f : a; /* from there on the result rounds to 1 */
  return tf_with_sign_f32(-tf_expm1_f32(-a * tf_erf_poly_f32(a)), x);
}

/* Activations. A NaN stays; comparisons are written for that. */

static inline float tf_reciprocal_f32(float x) { return 1.0f / x; }
static inline float tf_sqrt_f32(float x) { return tf_root_f32(x); }
static inline float tf_rsqrt_f32(float x) { return 1.0f / tf_root_f32(x); }
static inline float tf_elu_f32(float x) { return x < 0.0f ? tf_expm1_f32(x) : x; }

static inline float tf_selu_f32(float x) {
  float factor = x < 0.0f ? 1.7580993408473768f : 1.0507009873554805f; /* alpha * scale, scale */
  return factor * tf_elu_f32(x);
}

#endif
