/* Arguments of sin, cos and tan in float64, reduced to [-pi/4, pi/4] and a quadrant, up to TF_TRIGONOMETRIC_FAST.
 * Larger ones are left to the language's library. */
#ifndef TIMBERFRAME_MATH_REDUCTION_FLOAT64_H
#define TIMBERFRAME_MATH_REDUCTION_FLOAT64_H

#include <timberframe/math/precision_float64.h>
#include <timberframe/math/trigonometric.h>

#define TF_TRIGONOMETRIC_FAST 0x1p20

static inline double tf_reduce_half_pi_f64(double a, int64_t *quadrant) {
  double t = tf_fma_f64(a, 0x1.45f306dc9c883p-1, TF_ROUNDER);
  double n = t - TF_ROUNDER;
  *quadrant = tf_int_of_f64(t);
#if TF_HAS_FMA
  /* The first difference is exact: it is below 1 and a multiple of 2^-53. */
  double r = tf_fma_f64(n, -TF_HALF_PI, a);
  r = tf_fma_f64(n, -TF_HALF_PI_LOW, r);
  return tf_fma_f64(n, -TF_HALF_PI_LOWEST, r);
#else
  /* pi/2 in parts of 33 bits, whose products with n, of 20 bits, are exact. */
  double r = a - n * 0x1.921fb544p+0;
  r -= n * 0x1.0b4611a6p-34;
  r -= n * 0x1.3198a2ep-69;
  return r - n * 0x1.b839a252049c1p-104;
#endif
}

#if defined(__OPENCL_VERSION__) || defined(__CUDACC__)
static inline double tf_sin_f64(double x) {
  return tf_abs_f64(x) <= TF_TRIGONOMETRIC_FAST ? tf_sin_fast_f64(x) : sin(x);
}

static inline double tf_cos_f64(double x) {
  return tf_abs_f64(x) <= TF_TRIGONOMETRIC_FAST ? tf_cos_fast_f64(x) : cos(x);
}

static inline double tf_tan_f64(double x) {
  return tf_abs_f64(x) <= TF_TRIGONOMETRIC_FAST ? tf_tan_fast_f64(x) : tan(x);
}
#endif

#endif
