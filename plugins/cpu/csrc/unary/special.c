/* Functions of probability: erf, gamma and their relatives. float32 and narrower floats go through float64 (erf of
 * those is in float32.c). */
#define TF_MAP_GRAIN 1024
#include <timberframe/math/digamma.h>
#include <timberframe/math/inverse_erf.h>

#include "map.h"

#define TF_FUNCTIONS(X)                                                                                            \
  X(erfc, erfc) X(erfinv, tf_erfinv) X(ndtri, tf_ndtri) X(lgamma, tf_log_gamma_f64) X(digamma, tf_digamma)

#define TF_DEFINE(name, f)                                                                                         \
  static void name##_range(const float *in, float *out, int64_t count, const int64_t *parameters) {                \
    (void)parameters;                                                                                              \
    for (int64_t i = 0; i < count; i++) out[i] = (float)f((double)in[i]);                                          \
  }                                                                                                                \
  static void name##_range_float64(const double *in, double *out, int64_t count, const int64_t *parameters) {      \
    (void)parameters;                                                                                              \
    for (int64_t i = 0; i < count; i++) out[i] = f(in[i]);                                                         \
  }                                                                                                                \
  TF_FLOAT_KERNELS(name)                                                                                           \
  TF_MAP_KERNEL(name##_float64, double, double, name##_range_float64)
TF_FUNCTIONS(TF_DEFINE)

static void erf_range_float64(const double *in, double *out, int64_t count, const int64_t *parameters) {
  (void)parameters;
  for (int64_t i = 0; i < count; i++) out[i] = erf(in[i]);
}
TF_MAP_KERNEL(erf_float64, double, double, erf_range_float64)

#define TF_NAMED(name, f) TF_FLOAT_ENTRIES(name) TF_ENTRY(name##_float64),
TF_TABLE(unary_special) = {TF_FUNCTIONS(TF_NAMED) TF_ENTRY(erf_float64), TF_END};
