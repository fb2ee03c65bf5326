/* Elementary functions and activations of float64. */
#include <math.h>

#include <timberframe/math/functions_float64.h>

#include "map.h"

/* The functions whose straight-line form holds for every argument. */
#define TF_FUNCTIONS(X)                                                                                            \
  X(reciprocal) X(sqrt) X(rsqrt) X(exp) X(expm1) X(log) X(log1p) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) \
  X(asin) X(acos) X(atan) X(sigmoid) X(softplus) X(elu) X(selu)

#define TF_DEFINE(name)                                                                                            \
  TF_RANGE64(name##_range, tf_##name##_f64)                                                                        \
  TF_MAP_KERNEL(name##_float64, double, double, name##_range)
TF_FUNCTIONS(TF_DEFINE)

/* sin, cos and tan: a fast loop, and one more look at the elements that it cannot reduce. */
#define TF_DEFINE_TRIGONOMETRIC(name)                                                                              \
  TF_RANGE64(name##_fast_range, tf_##name##_fast_f64)                                                              \
  static void name##_range(const double *in, double *out, int64_t count, const int64_t *parameters) {              \
    for (int64_t i = 0; i < count; i += TF_MAP_BLOCK) {                                                            \
      int64_t n = count - i < TF_MAP_BLOCK ? count - i : TF_MAP_BLOCK;                                             \
      double kept[TF_MAP_BLOCK];                                                                                   \
      int large = 0;                                                                                               \
      for (int64_t j = 0; j < n; j++) large |= !(tf_abs_f64(in[i + j]) <= TF_TRIGONOMETRIC_FAST);                  \
      if (large) memcpy(kept, in + i, (size_t)n * sizeof *kept);                                                   \
      name##_fast_range(in + i, out + i, n, parameters);                                                           \
      for (int64_t j = 0; large && j < n; j++) {                                                                   \
        if (!(tf_abs_f64(kept[j]) <= TF_TRIGONOMETRIC_FAST)) out[i + j] = name(kept[j]);                           \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  TF_MAP_KERNEL(name##_float64, double, double, name##_range)

TF_DEFINE_TRIGONOMETRIC(sin)
TF_DEFINE_TRIGONOMETRIC(cos)
TF_DEFINE_TRIGONOMETRIC(tan)

#define TF_NAMED(name) TF_ENTRY(name##_float64),
TF_TABLE(unary_float64) = {TF_FUNCTIONS(TF_NAMED) TF_NAMED(sin) TF_NAMED(cos) TF_NAMED(tan) TF_END};
