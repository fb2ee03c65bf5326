/* tanh, roots and activations of float64, one element each; with exponential.h and trigonometric.h these are the
 * functions that hold for every argument. */
#ifndef TIMBERFRAME_MATH_FUNCTIONS_FLOAT64_H
#define TIMBERFRAME_MATH_FUNCTIONS_FLOAT64_H

#include <timberframe/math/precision_float64.h>

#include <timberframe/math/exponential.h>
#include <timberframe/math/reduction_float64.h>

/* With t = exp(2|x|) - 1, tanh(|x|) = t / (t + 2). */
static inline double tf_tanh_f64(double x) {
  double a = tf_abs_f64(x);
  double t = tf_expm1_f64(2.0 * (a > 20.0 ? 20.0 : a)); /* from 20 on the result rounds to 1 */
  return tf_with_sign_f64(t / (t + 2.0), x);
}

static inline double tf_reciprocal_f64(double x) { return 1.0 / x; }
static inline double tf_sqrt_f64(double x) { return tf_root_f64(x); }
static inline double tf_rsqrt_f64(double x) { return 1.0 / tf_root_f64(x); }
static inline double tf_elu_f64(double x) { return x < 0.0 ? tf_expm1_f64(x) : x; }

static inline double tf_selu_f64(double x) {
  double factor = x < 0.0 ? 1.7580993408473768599 : 1.0507009873554804935; /* alpha * scale, scale */
  return factor * tf_elu_f64(x);
}

#endif
