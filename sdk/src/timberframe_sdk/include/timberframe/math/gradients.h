/* Derivatives of functions of one operand, times a gradient.
 *
 * All are computed in tf_wide, which is float64 where there is one, so that differences such as 1 - y^2 keep float32's
 * digits and products of three factors cannot overflow on the way. As in TensorFlow a gradient of 0 gives 0 at a pole of
 * the slope, so that what is not chosen (by Select, by a clip) adds nothing; and the gradients of relus are products with
 * 0 or 1, where NaN and infinity become NaN. */
#ifndef TIMBERFRAME_MATH_GRADIENTS_H
#define TIMBERFRAME_MATH_GRADIENTS_H

#ifdef TF_NO_FLOAT64
#include <timberframe/math/precision_float32.h>
typedef float tf_wide;
#define TF_WIDE(name) tf_##name##_f32
#define TF_SELU_HIGH 1.75809931755065918f
#define TF_SELU_LOW 2.32967174440545927e-08f
#else
#include <timberframe/math/precision_float64.h>
typedef double tf_wide;
#define TF_WIDE(name) tf_##name##_f64
#define TF_SELU_HIGH 1.75809934084737676
#define TF_SELU_LOW 1.41535193800844769e-17
#endif

#include <timberframe/math/exponential.h>

static inline tf_wide tf_tanh_grad(tf_wide y, tf_wide dy) { return dy * ((1.0 - y) * (1.0 + y)); }
static inline tf_wide tf_sigmoid_grad(tf_wide y, tf_wide dy) { return dy * (y * (1.0 - y)); }
static inline tf_wide tf_sqrt_grad(tf_wide y, tf_wide dy) { return dy == 0.0 ? 0.0 : 0.5 * (dy / y); }
static inline tf_wide tf_rsqrt_grad(tf_wide y, tf_wide dy) { return dy == 0.0 ? 0.0 : -0.5 * (dy * y * y * y); }
static inline tf_wide tf_reciprocal_grad(tf_wide y, tf_wide dy) { return dy == 0.0 ? 0.0 : -(dy * y * y); }
static inline tf_wide tf_relu_grad(tf_wide g, tf_wide x) { return g * (tf_wide)(x > 0.0); }
static inline tf_wide tf_relu6_grad(tf_wide g, tf_wide x) { return g * (tf_wide)((x > 0.0) & (x < 6.0)); }
static inline tf_wide tf_elu_grad(tf_wide g, tf_wide y) { return y < 0.0 ? (y + 1.0) * g : g; }
static inline tf_wide tf_softplus_grad(tf_wide g, tf_wide x) { return g * TF_WIDE(sigmoid)(x); }

/* Where y is near it, y + alpha * scale has only the digits that the constant has: hence its rounding error, too. */
static inline tf_wide tf_selu_grad(tf_wide g, tf_wide y) {
  return g * (y < 0.0 ? (y + TF_SELU_HIGH) + TF_SELU_LOW : 1.0507009873554804935);
}

#endif
