/* Polynomials of the float32 kernels. Written by tools/fit_polynomials.py; do not edit. */
#ifndef TIMBERFRAME_MATH_POLYNOMIALS_FLOAT32_H
#define TIMBERFRAME_MATH_POLYNOMIALS_FLOAT32_H

#include <timberframe/math/fma.h>

/* (exp(x) - 1 - x) / x^2 for x in [-0.34692, 0.34692]; relative error at most 2^-26.08. */
static inline float tf_exp_poly_f32(float x) {
  float x2 = x * x;
  float x4 = x2 * x2;
  return tf_fma_f32(0x1.6aca0ep-10f, x4, tf_fma_f32(tf_fma_f32(0x1.122c08p-7f, x, 0x1.555798p-5f), x2,
    tf_fma_f32(0x1.5554aap-3f, x, 0x1.fffffep-2f)));
}

/* (sinh(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 1.002]; relative error at most 2^-25.32. */
static inline float tf_sinh_poly_f32(float x) {
  return tf_fma_f32(tf_fma_f32(0x1.ab4288p-13f, x, 0x1.10f76p-7f), x, 0x1.555598p-3f);
}

/* (log(1 + x) - x + x^2 / 2) / x^3 for x in [-0.292894, 0.414215]; relative error at most 2^-24.91. */
static inline float tf_log_poly_f32(float x) {
  float x2 = x * x;
  float x4 = x2 * x2;
  return tf_fma_f32(tf_fma_f32(0x1.6436f2p-4f, x2, tf_fma_f32(-0x1.241d7cp-3f, x, 0x1.3173bap-3f)), x4,
    tf_fma_f32(tf_fma_f32(-0x1.5385c6p-3f, x, 0x1.98d84p-3f), x2, tf_fma_f32(-0x1.00036ep-2f, x, 0x1.5556d8p-2f)));
}

/* (sin(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.618085]; relative error at most 2^-27.89. */
static inline float tf_sin_poly_f32(float x) {
  return tf_fma_f32(tf_fma_f32(-0x1.9951eap-13f, x, 0x1.110774p-7f), x, -0x1.555546p-3f);
}

/* (cos(sqrt(x)) - 1 + x / 2) / x^2 for x in [0.0, 0.618085]; relative error at most 2^-32.99. */
static inline float tf_cos_poly_f32(float x) {
  return tf_fma_f32(tf_fma_f32(0x1.99e80cp-16f, x, -0x1.6c0c28p-10f), x, 0x1.55554ap-5f);
}

/* (asin(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.25]; relative error at most 2^-27.62. */
static inline float tf_asin_poly_f32(float x) {
  float x2 = x * x;
  float x4 = x2 * x2;
  return tf_fma_f32(0x1.595c64p-5f, x4, tf_fma_f32(tf_fma_f32(0x1.8c3e3cp-6f, x, 0x1.747bbap-5f), x2,
    tf_fma_f32(0x1.330204p-4f, x, 0x1.5555c8p-3f)));
}

/* (atan(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.171744]; relative error at most 2^-25.52. */
static inline float tf_atan_poly_f32(float x) {
  float x2 = x * x;
  return tf_fma_f32(tf_fma_f32(0x1.49b806p-4f, x, -0x1.1c3112p-3f), x2, tf_fma_f32(0x1.99243cp-3f, x, -0x1.555452p-2f));
}

/* -log(erfc(x)) / x for x in [0.0, 4.0]; relative error at most 2^-24.2. */
static inline float tf_erf_poly_f32(float x) {
  float x2 = x * x;
  float x4 = x2 * x2;
  return tf_fma_f32(tf_fma_f32(tf_fma_f32(0x1.2b810cp-15f, x, -0x1.6c8814p-12f), x2, tf_fma_f32(0x1.324d28p-10f, x,
    0x1.3ebcaap-12f)), x4, tf_fma_f32(tf_fma_f32(-0x1.3d7e3ap-6f, x, 0x1.a53016p-4f), x2, tf_fma_f32(0x1.45f26cp-1f, x,
    0x1.20dd76p+0f)));
}

/* (tanh(sqrt(x) / 2) / sqrt(x) * (2 + x * tf_tanh_denominator_f32(x)) - 1) / x for x in [0.0, 81.3604]; relative error
 * at most 2^-26.59. */
static inline float tf_tanh_numerator_f32(float x) {
  return tf_fma_f32(0x1.db058ap-14f, x, 0x1.e70ffap-6f);
}

/* (denominator - 2) / x of the best quotient, of degrees 2 and 3, for tanh(sqrt(x) / 2) / sqrt(x), for x in [0.0,
 * 81.3604]; exactly. */
static inline float tf_tanh_denominator_f32(float x) {
  return tf_fma_f32(tf_fma_f32(0x1.4431fep-19f, x, 0x1.3b0708p-9f), x, 0x1.cf1948p-3f);
}

#endif
