/* Functions of one operation: signs, rounding, tests and cut-off activations, of all dtypes. */
#include <timberframe/math/rounding.h>

#include "map.h"

#define TF_INTEGERS(X, name) X(name, int8) X(name, int16) X(name, int32) X(name, int64)
#define TF_UNSIGNED(X, name) X(name, uint8) X(name, uint16) X(name, uint32) X(name, uint64)

/* The kernel <name>_<dtype> of an expression in x. */
#define TF_SIMPLE(name, dtype, input, output, expression)                                                          \
  static void name##_##dtype##_range(const input *in, output *out, int64_t count, const int64_t *parameters) {     \
    (void)parameters;                                                                                              \
    TF_INDEPENDENT for (int64_t i = 0; i < count; i++) {                                                           \
      input x = in[i];                                                                                             \
      out[i] = (output)(expression);                                                                               \
    }                                                                                                              \
  }                                                                                                                \
  TF_MAP_KERNEL(name##_##dtype, input, output, name##_##dtype##_range)

/* The same for float32, float16, bfloat16 and float64. */
#define TF_SIMPLE_FLOATS(name, expression32, expression64)                                                         \
  TF_SIMPLE(name, float64, double, double, expression64)                                                           \
  static void name##_range(const float *in, float *out, int64_t count, const int64_t *parameters) {                \
    (void)parameters;                                                                                              \
    TF_INDEPENDENT for (int64_t i = 0; i < count; i++) {                                                           \
      float x = in[i];                                                                                             \
      out[i] = (expression32);                                                                                     \
    }                                                                                                              \
  }                                                                                                                \
  TF_FLOAT_KERNELS(name)

TF_SIMPLE(abs, float32, float, float, tf_abs_f32(x))
TF_SIMPLE(abs, float64, double, double, tf_abs_f64(x))
TF_SIMPLE(abs, float16, uint16_t, uint16_t, x & 0x7fff)
TF_SIMPLE(neg, float32, float, float, -x)
TF_SIMPLE(neg, float64, double, double, -x)
TF_SIMPLE(neg, float16, uint16_t, uint16_t, x ^ 0x8000)
#define abs_bfloat16 abs_float16 /* the sign is the top bit of both formats */
#define neg_bfloat16 neg_float16

/* Zero of either sign gives 0, NaN itself. */
TF_SIMPLE_FLOATS(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x + 0.0f, x > 0 ? 1.0 : x < 0 ? -1.0 : x + 0.0)
TF_SIMPLE_FLOATS(square, x * x, x * x)
TF_SIMPLE_FLOATS(floor, tf_floor_f32(x), tf_floor_f64(x))
TF_SIMPLE_FLOATS(ceil, tf_ceil_f32(x), tf_ceil_f64(x))
TF_SIMPLE_FLOATS(rint, tf_rint_f32(x), tf_rint_f64(x))
TF_SIMPLE_FLOATS(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : x)
TF_SIMPLE_FLOATS(relu6, x <= 0 ? 0 : x > 6 ? 6 : x, x <= 0 ? 0 : x > 6 ? 6 : x)

/* Integers wrap around, so that they are computed unsigned. */
#define TF_ABS(name, type) TF_SIMPLE(name, type, type##_t, u##type##_t, x < 0 ? 0 - (u##type##_t)x : (u##type##_t)x)
#define TF_NEG(name, type) TF_SIMPLE(name, type, u##type##_t, u##type##_t, 0 - x)
#define TF_SIGN(name, type) TF_SIMPLE(name, type, type##_t, type##_t, (x > 0) - (x < 0))
#define TF_SQUARE(name, type) TF_SIMPLE(name, type, type##_t, type##_t, (uint64_t)x * (uint64_t)x)
#define TF_INVERT(name, type) TF_SIMPLE(name, type, type##_t, type##_t, ~x)
#define TF_RELU(name, type) TF_SIMPLE(name, type, type##_t, type##_t, x > 0 ? x : 0)
#define TF_RELU6(name, type) TF_SIMPLE(name, type, type##_t, type##_t, x > 6 ? 6 : x > 0 ? x : 0)
TF_INTEGERS(TF_ABS, abs)
TF_INTEGERS(TF_NEG, neg)
TF_INTEGERS(TF_SIGN, sign)
TF_INTEGERS(TF_SQUARE, square) TF_UNSIGNED(TF_SQUARE, square)
TF_INTEGERS(TF_INVERT, invert) TF_UNSIGNED(TF_INVERT, invert)
TF_INTEGERS(TF_RELU, relu) TF_UNSIGNED(TF_RELU, relu)
TF_INTEGERS(TF_RELU6, relu6) TF_UNSIGNED(TF_RELU6, relu6)

/* Tests: a number without its sign is compared, as an integer, with infinity. */
#define TF_TESTS(dtype, type, magnitude, infinity)                                                                 \
  TF_SIMPLE(is_nan, dtype, type, uint8_t, ((x) & magnitude) > infinity)                                            \
  TF_SIMPLE(is_inf, dtype, type, uint8_t, ((x) & magnitude) == infinity)                                           \
  TF_SIMPLE(is_finite, dtype, type, uint8_t, ((x) & magnitude) < infinity)
TF_TESTS(float16, uint16_t, 0x7fff, 0x7c00)
TF_TESTS(bfloat16, uint16_t, 0x7fff, 0x7f80)
TF_TESTS(float32, int32_t, INT32_MAX, 0x7f800000)
TF_TESTS(float64, int64_t, INT64_MAX, 0x7ff0000000000000)

TF_SIMPLE(logical_not, bool, uint8_t, uint8_t, x ^ 1)

/* LeakyRelu: the slope for negative numbers is the parameter. */
static void leaky_relu_range(const float *in, float *out, int64_t count, const int64_t *parameters) {
  float alpha = (float)tf_double(parameters[0]);
  TF_INDEPENDENT for (int64_t i = 0; i < count; i++) out[i] = in[i] < 0 ? alpha * in[i] : in[i];
}
TF_FLOAT_KERNELS(leaky_relu)

static void leaky_relu_range64(const double *in, double *out, int64_t count, const int64_t *parameters) {
  double alpha = tf_double(parameters[0]);
  TF_INDEPENDENT for (int64_t i = 0; i < count; i++) out[i] = in[i] < 0 ? alpha * in[i] : in[i];
}
TF_MAP_KERNEL(leaky_relu_float64, double, double, leaky_relu_range64)

#define TF_NAMED(name, type) TF_ENTRY(name##_##type),
#define TF_NAMED_FLOATS(name)                                                                                      \
  {#name "_float16", name##_float16}, {#name "_bfloat16", name##_bfloat16}, {#name "_float32", name##_float32},    \
  {#name "_float64", name##_float64},
#define TF_NAMED_ALL(name) TF_NAMED_FLOATS(name) TF_INTEGERS(TF_NAMED, name)

TF_TABLE(unary_simple) = {
  TF_NAMED_ALL(abs) TF_NAMED_ALL(neg) TF_NAMED_ALL(sign)
  TF_NAMED_ALL(square) TF_UNSIGNED(TF_NAMED, square)
  TF_NAMED_ALL(relu) TF_UNSIGNED(TF_NAMED, relu)
  TF_NAMED_ALL(relu6) TF_UNSIGNED(TF_NAMED, relu6)
  TF_INTEGERS(TF_NAMED, invert) TF_UNSIGNED(TF_NAMED, invert)
  TF_NAMED_FLOATS(floor) TF_NAMED_FLOATS(ceil) TF_NAMED_FLOATS(rint)
  TF_NAMED_FLOATS(is_nan) TF_NAMED_FLOATS(is_inf) TF_NAMED_FLOATS(is_finite)
  TF_NAMED_FLOATS(leaky_relu)
  TF_ENTRY(logical_not_bool), TF_END
};
