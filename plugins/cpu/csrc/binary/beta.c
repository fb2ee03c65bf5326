/* The regularised incomplete beta function, in float64. */
#define _DEFAULT_SOURCE /* lgamma_r */
#include <math.h>

#include "common/broadcast.h"

#define SMALLEST 1e-300

static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign); /* lgamma itself writes a global */
}

static double away_from_zero(double x) { return fabs(x) < SMALLEST ? SMALLEST : x; }

/* The continued fraction by Lentz's method (DLMF 8.17.22); about the root of the larger parameter many steps,
 * until one changes no more than its roundings. */
static double fraction(double a, double b, double x) {
  double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)), h = d;
  for (double m = 1.0; m < 20000.0; m += 1.0) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    const double half = h * d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double next = half * d * c;
    const int done = !(fabs(next - h) > 0x1p-49 * fabs(next));
    h = next;
    if (done) break;
  }
  return h;
}

static double beta(double a, double b, double x) {
  if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return NAN;
  if (x == 0.0 || x == 1.0) return x;
  if (isinf(a) || isinf(b)) return NAN;
  const double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
  if (x > (a + 1.0) / (a + b + 2.0)) return front == 0.0 ? 1.0 : 1.0 - front * fraction(b, a, 1.0 - x) / b;
  return front == 0.0 ? 0.0 : front * fraction(a, b, x) / a;
}

#define DEFINE(type, T)                                                                                              \
  static void beta_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {             \
    const T *a = in[0], *b = in[1], *x = in[2];                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                            \
      ((T *)out)[i] = (T)beta((double)a[i * step[0]], (double)b[i * step[1]], (double)x[i * step[2]]);               \
    }                                                                                                                \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(beta_##type, 3)

DEFINE(float32, float)
DEFINE(float64, double)

TF_TABLE(binary_beta) = {TF_ENTRY(beta_float32), TF_ENTRY(beta_float64), TF_END};
