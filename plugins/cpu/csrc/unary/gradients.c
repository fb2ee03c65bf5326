/* Gradients of functions of one operand: of two tensors of one shape, in TensorFlow's order (the gradient is second for
 * those that take the function's result y, first for the activations).
 *
 * All floats are computed in float64, so that differences such as 1 - y^2 keep float32's digits and products of three
 * factors cannot overflow on the way. */
#include "pair.h"
#include "precision_float64.h"

#include "exponential.h"

static inline double tf_tanh_grad(double y, double dy) { return dy * ((1.0 - y) * (1.0 + y)); }
static inline double tf_sigmoid_grad(double y, double dy) { return dy * (y * (1.0 - y)); }
static inline double tf_sqrt_grad(double y, double dy) { return 0.5 * (dy / y); }
static inline double tf_rsqrt_grad(double y, double dy) { return -0.5 * (dy * y * y * y); }
static inline double tf_reciprocal_grad(double y, double dy) { return -(dy * y * y); }
static inline double tf_relu_grad(double g, double x) { return x > 0.0 ? g : 0.0; }
static inline double tf_relu6_grad(double g, double x) { return (x > 0.0) & (x < 6.0) ? g : 0.0; }
static inline double tf_elu_grad(double g, double y) { return y < 0.0 ? (y + 1.0) * g : g; }
static inline double tf_softplus_grad(double g, double x) { return g * tf_sigmoid_f64(x); }

static inline double tf_softsign_grad(double g, double x) {
  double d = 1.0 + tf_abs_f64(x);
  return g / d / d;
}

static inline double tf_selu_grad(double g, double y) {
  return g * (y < 0.0 ? y + 1.7580993408473768599 : 1.0507009873554804935); /* alpha * scale, scale */
}

#define TF_FROM_FLOAT16(x) (double)tf_float32_from_float16(x)
#define TF_FROM_BFLOAT16(x) (double)tf_float32_from_bfloat16(x)
#define TF_TO_FLOAT16(x) tf_float16_from_float32((float)(x))
#define TF_TO_BFLOAT16(x) tf_bfloat16_from_float32((float)(x))

#define TF_FLOAT_PAIRS(name, f, first_parameter)                                                                   \
  TF_PAIR(name, float64, double, double, (double), (double), f, first_parameter)                                   \
  TF_PAIR(name, float32, float, double, (double), (float), f, first_parameter)                                     \
  TF_PAIR(name, float16, tf_float16, double, TF_FROM_FLOAT16, TF_TO_FLOAT16, f, first_parameter)                   \
  TF_PAIR(name, bfloat16, tf_bfloat16, double, TF_FROM_BFLOAT16, TF_TO_BFLOAT16, f, first_parameter)

#define TF_FUNCTIONS(X)                                                                                            \
  X(tanh_grad) X(sigmoid_grad) X(sqrt_grad) X(rsqrt_grad) X(reciprocal_grad) X(relu_grad) X(relu6_grad)            \
  X(elu_grad) X(selu_grad) X(softplus_grad) X(softsign_grad)
#define TF_DEFINE(name) TF_FLOAT_PAIRS(name, (tf_##name(x, y)), 0.0)
TF_FUNCTIONS(TF_DEFINE)
TF_FLOAT_PAIRS(leaky_relu_grad, (y > 0.0 ? x : parameter * x), tf_double(parameters[0]))

#define TF_INTEGERS(X) X(int8) X(int16) X(int32) X(int64) X(uint8) X(uint16) X(uint32) X(uint64)
#define TF_DEFINE_INTEGER(dtype)                                                                                   \
  TF_PAIR(relu_grad, dtype, dtype##_t, dtype##_t, (dtype##_t), (dtype##_t), (y > 0 ? x : 0), 0.0)                  \
  TF_PAIR(relu6_grad, dtype, dtype##_t, dtype##_t, (dtype##_t), (dtype##_t), (y > 0 && y < 6 ? x : 0), 0.0)
TF_INTEGERS(TF_DEFINE_INTEGER)

#define TF_NAMED(name)                                                                                             \
  TF_ENTRY(name##_float16), TF_ENTRY(name##_bfloat16), TF_ENTRY(name##_float32), TF_ENTRY(name##_float64),
#define TF_NAMED_INTEGER(dtype) TF_ENTRY(relu_grad_##dtype), TF_ENTRY(relu6_grad_##dtype),
TF_TABLE(unary_gradients) = {TF_FUNCTIONS(TF_NAMED) TF_NAMED(leaky_relu_grad) TF_INTEGERS(TF_NAMED_INTEGER) TF_END};
