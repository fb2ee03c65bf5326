/* Functions of probability: erf, gamma and their relatives. float32 and narrower floats go through float64 (erf of
 * those is in float32.c). */
#define _DEFAULT_SOURCE /* lgamma_r */
#define TF_MAP_GRAIN 1024
#include <math.h>

#include "map.h"
#include "unary/digamma.h"

#define TF_ROOT_2 0x1.6a09e667f3bcdp+0
#define TF_HALF_ROOT_PI 0x1.c5bf891b4ef6bp-1

static double tf_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign); /* lgamma itself writes a global */
}

/* y >= 0 with erf(y) = a and erfc(y) = c, where a + c = 1 and the smaller of the two is exact.
 *
 * Winitzki's formula (A handy approximation for the error function and its inverse, 2008) is right to 1 in 500; three
 * steps of Newton's iteration, each of which doubles the digits, do the rest. From 1/2 on it works on log(erfc(y)),
 * which is nearly quadratic. */
static double tf_inverse_erf(double a, double c) {
  double l = a < 0.5 ? log1p(-a * a) : log(c * (2.0 - c));
  double k = 4.330746750799873 + 0.5 * l; /* 2 / (0.147 pi) */
  double square = -l / 0.147, root = sqrt(k * k + square);
  double y = sqrt(k > 0.0 ? square / (root + k) : root - k);
  for (int step = 0; step < 3; step++) {
    double slope = exp(-y * y) / TF_HALF_ROOT_PI;
    if (a < 0.5) {
      y -= (erf(y) - a) / slope;
    } else {
      double e = erfc(y);
      y += log1p((e - c) / c) * e / slope;
    }
  }
  return y;
}

static double tf_erfinv(double x) {
  double a = fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? copysign(INFINITY, x) : NAN;
  return copysign(tf_inverse_erf(a, 1.0 - a), x);
}

/* The quantile of the normal distribution: -sqrt(2) times the inverse of erfc at 2p. */
static double tf_ndtri(double p) {
  if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -INFINITY : p == 1.0 ? INFINITY : NAN;
  double q = p < 0.5 ? p : 1.0 - p;
  double y = TF_ROOT_2 * tf_inverse_erf(1.0 - 2.0 * q, 2.0 * q);
  return p < 0.5 ? -y : y;
}

#define TF_FUNCTIONS(X)                                                                                            \
  X(erfc, erfc) X(erfinv, tf_erfinv) X(ndtri, tf_ndtri) X(lgamma, tf_lgamma) X(digamma, tf_digamma)

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
