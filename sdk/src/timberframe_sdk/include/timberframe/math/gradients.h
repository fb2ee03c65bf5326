/* Derivatives of functions of one operand, times a gradient.
 *
 * All are computed in float64, so that differences such as 1 - y^2 keep float32's digits and products of three factors
 * cannot overflow on the way. */
#ifndef TIMBERFRAME_MATH_GRADIENTS_H
#define TIMBERFRAME_MATH_GRADIENTS_H

#include <timberframe/math/precision_float64.h>

#include <timberframe/math/exponential.h>

static inline double tf_tanh_grad(double y, double dy) { return dy * ((1.0 - y) * (1.0 + y)); }
static inline double tf_sigmoid_grad(double y, double dy) { return dy * (y * (1.0 - y)); }
static inline double tf_sqrt_grad(double y, double dy) { return 0.5 * (dy / y); }
static inline double tf_rsqrt_grad(double y, double dy) { return -0.5 * (dy * y * y * y); }
static inline double tf_reciprocal_grad(double y, double dy) { return -(dy * y * y); }
static inline double tf_relu_grad(double g, double x) { return x > 0.0 ? g : 0.0; }
static inline double tf_relu6_grad(double g, double x) { return x > 0.0 && x < 6.0 ? g : 0.0; }
static inline double tf_elu_grad(double g, double y) { return y < 0.0 ? (y + 1.0) * g : g; }
static inline double tf_softplus_grad(double g, double x) { return g * tf_sigmoid_f64(x); }

static inline double tf_softsign_grad(double g, double x) {
  double d = 1.0 + tf_abs_f64(x);
  return g / d / d;
}

static inline double tf_selu_grad(double g, double y) {
  return g * (y < 0.0 ? y + 1.7580993408473768599 : 1.0507009873554804935); /* alpha * scale, scale */
}

#endif
