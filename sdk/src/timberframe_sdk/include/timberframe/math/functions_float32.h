/* tanh, erf, roots and activations of float32, one element each; with exponential.h and trigonometric.h these are the
 * functions that hold for every argument. */
#ifndef TIMBERFRAME_MATH_FUNCTIONS_FLOAT32_H
#define TIMBERFRAME_MATH_FUNCTIONS_FLOAT32_H

#include <timberframe/math/precision_float32.h>

#include <timberframe/math/exponential.h>
#include <timberframe/math/reduction_float32.h>

/* 1 - 2 / (1 + exp(2|x|)); an odd polynomial below TF_TANH_SMALL, where that would cancel. As the quotient is below 1/2
 * and shrinks, exp may err by a few ULP. */
static inline float tf_tanh_f32(float x) {
  float a = tf_abs_f32(x), a2 = a * a;
  float small = tf_fma_f32(a * a2, tf_tanh_poly_f32(a2), a);
  /* From 9.02 on the result rounds to 1. Bits of positive numbers are in their order; NaN is dealt with below. */
  int32_t limit = tf_int_of_f32(9.02f), bits = tf_int_of_f32(a);
  float bounded = tf_of_int_f32(bits < limit ? bits : limit);
  float t = tf_fma_f32(bounded, 2.0f * TF_LOG2E, TF_ROUNDER);
  float r = tf_fma_f32(t - TF_ROUNDER, -TF_LN2, bounded + bounded);
  float e = tf_fma_f32(r * r, tf_exp_short_poly_f32(r), 1.0f + r);
  int32_t scaled = tf_int_of_f32(e) + (int32_t)((uint32_t)(tf_int_of_f32(t) - 1) << TF_MANTISSA);
  float large = 1.0f - 1.0f / (0.5f + tf_of_int_f32(scaled));
  return tf_with_sign_f32(a >= TF_TANH_SMALL ? large : small, x);
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
static inline float tf_softsign_f32(float x) { return x / (1.0f + tf_abs_f32(x)); }
static inline float tf_elu_f32(float x) { return x < 0.0f ? tf_expm1_f32(x) : x; }

static inline float tf_selu_f32(float x) {
  float factor = x < 0.0f ? 1.7580993408473768f : 1.0507009873554805f; /* alpha * scale, scale */
  return factor * tf_elu_f32(x);
}

#endif
