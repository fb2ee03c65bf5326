/* Elementary functions and activations of float32, float16 and bfloat16. */
#include <timberframe/math/functions_float32.h>

#include "map.h"

/* The functions whose straight-line form holds for every argument: kernel name, function. */
#define TF_FUNCTIONS(X)                                                                                            \
  X(reciprocal, tf_reciprocal_f32) X(sqrt, tf_sqrt_f32) X(rsqrt, tf_rsqrt_f32)                                     \
  X(exp, tf_exp_f32) X(expm1, tf_expm1_f32) X(log, tf_log_f32) X(log1p, tf_log1p_f32)                              \
  X(sinh, tf_sinh_f32) X(cosh, tf_cosh_f32) X(tanh, tf_tanh_f32)                                                   \
  X(asinh, tf_asinh_f32) X(acosh, tf_acosh_f32) X(atanh, tf_atanh_f32)                                             \
  X(asin, tf_asin_f32) X(acos, tf_acos_f32) X(atan, tf_atan_f32)                                                   \
  X(erf, tf_erf_f32) X(sigmoid, tf_sigmoid_f32) X(softplus, tf_softplus_f32)                                       \
  X(elu, tf_elu_f32) X(selu, tf_selu_f32)

#define TF_DEFINE(name, f)                                                                                         \
  TF_RANGE32(name##_range, f)                                                                                      \
  TF_FLOAT_KERNELS(name)
TF_FUNCTIONS(TF_DEFINE)

/* sin, cos and tan: a fast loop, and one more look at the elements that it cannot reduce. */

static inline int tf_any_large_f32(const float *in, int64_t count) {
  int32_t limit = tf_int_of_f32(TF_TRIGONOMETRIC_FAST), large = 0;
  for (int64_t i = 0; i < count; i++) large |= tf_int_of_f32(tf_abs_f32(in[i])) > limit;
  return large;
}

#define TF_DEFINE_TRIGONOMETRIC(name)                                                                              \
  TF_RANGE32(name##_fast_range, tf_##name##_fast_f32)                                                              \
  static void name##_range(const float *in, float *out, int64_t count, const int64_t *parameters) {                \
    for (int64_t i = 0; i < count; i += TF_MAP_BLOCK) {                                                            \
      int64_t n = count - i < TF_MAP_BLOCK ? count - i : TF_MAP_BLOCK;                                             \
      float kept[TF_MAP_BLOCK];                                                                                    \
      int large = tf_any_large_f32(in + i, n);                                                                     \
      if (large) memcpy(kept, in + i, (size_t)n * sizeof *kept);                                                   \
      name##_fast_range(in + i, out + i, n, parameters);                                                           \
      for (int64_t j = 0; large && j < n; j++) {                                                                   \
        if (!(tf_abs_f32(kept[j]) <= TF_TRIGONOMETRIC_FAST)) out[i + j] = tf_##name##_large_f32(kept[j]);          \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  TF_FLOAT_KERNELS(name)

TF_DEFINE_TRIGONOMETRIC(sin)
TF_DEFINE_TRIGONOMETRIC(cos)
TF_DEFINE_TRIGONOMETRIC(tan)

#define TF_NAMED(name, f) TF_FLOAT_ENTRIES(name)
TF_TABLE(unary_float32) = {
  TF_FUNCTIONS(TF_NAMED) TF_FLOAT_ENTRIES(sin) TF_FLOAT_ENTRIES(cos) TF_FLOAT_ENTRIES(tan) TF_END
};
