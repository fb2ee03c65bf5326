/* Gradients of functions of one operand: of two tensors of one shape, in TensorFlow's order (the gradient is second for
 * those that take the function's result y, first for the activations), all floats by way of float64. */
#include <timberframe/math/gradients.h>

#include "pair.h"

#define TF_FROM_FLOAT16(x) (double)tf_float32_from_float16(x)
#define TF_FROM_BFLOAT16(x) (double)tf_float32_from_bfloat16(x)
#define TF_TO_FLOAT16(x) tf_float16_from_float32((float)(x))
#define TF_TO_BFLOAT16(x) tf_bfloat16_from_float32((float)(x))

#define TF_FLOAT_PAIRS(name, f)                                                                                    \
  TF_PAIR(name, float64, double, double, (double), (double), f)                                                    \
  TF_PAIR(name, float32, float, double, (double), (float), f)                                                      \
  TF_PAIR(name, float16, tf_float16, double, TF_FROM_FLOAT16, TF_TO_FLOAT16, f)                                    \
  TF_PAIR(name, bfloat16, tf_bfloat16, double, TF_FROM_BFLOAT16, TF_TO_BFLOAT16, f)

#define TF_FUNCTIONS(X)                                                                                            \
  X(tanh_grad) X(sigmoid_grad) X(sqrt_grad) X(rsqrt_grad) X(reciprocal_grad) X(relu_grad) X(relu6_grad)            \
  X(softplus_grad)
#define TF_DEFINE(name) TF_FLOAT_PAIRS(name, (tf_##name(x, y)))
TF_FUNCTIONS(TF_DEFINE)

#define TF_INTEGERS(X) X(int8) X(int16) X(int32) X(int64) X(uint8) X(uint16) X(uint32) X(uint64)
#define TF_DEFINE_INTEGER(dtype)                                                                                   \
  TF_PAIR(relu_grad, dtype, dtype##_t, dtype##_t, (dtype##_t), (dtype##_t), (y > 0 ? x : 0))                       \
  TF_PAIR(relu6_grad, dtype, dtype##_t, dtype##_t, (dtype##_t), (dtype##_t), (y > 0 && y < 6 ? x : 0))
TF_INTEGERS(TF_DEFINE_INTEGER)

#define TF_NAMED(name)                                                                                             \
  TF_ENTRY(name##_float16), TF_ENTRY(name##_bfloat16), TF_ENTRY(name##_float32), TF_ENTRY(name##_float64),
#define TF_NAMED_INTEGER(dtype) TF_ENTRY(relu_grad_##dtype), TF_ENTRY(relu6_grad_##dtype),
TF_TABLE(unary_gradients) = {TF_FUNCTIONS(TF_NAMED) TF_INTEGERS(TF_NAMED_INTEGER) TF_END};
