/* How a gamma number moves with its shape parameter when the probability below it stays, in float64: -(dP/da) / p with
 * P the regularised lower incomplete gamma function and p its density. */
#include <math.h>

#include "common/broadcast.h"
#include "unary/digamma.h"

enum { MOST_TERMS = 20000 };

/* P = p x / a S with S the sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.7.1). */
static double series_slope(double a, double x) {
  double total = 1, slope = 0, term = 1, harmonic = 0;
  for (int n = 1; n < MOST_TERMS; n++) {
    const double k = a + n;
    term *= x / k;
    harmonic -= 1 / k;
    const double change = term * harmonic;
    total += term;
    slope += change;
    if (fabs(change) <= 0x1p-53 * fabs(slope)) break;
  }
  return -x / a * (total * (log(x) - tf_digamma(a + 1)) + slope);
}

/* A numerator or denominator of a convergent, and its derivative by a. */
typedef struct part {
  double value, slope;
} part;

static inline part next_part(part before, part last, double step, double level, double k) {
  return (part){level * last.value + step * before.value,
                level * last.slope - last.value + step * before.slope + k * before.value};
}

static inline part scaled(part x, double factor) { return (part){x.value * factor, x.slope * factor}; }

/* 1 - P = p x F with F the continued fraction of DLMF 8.9.2, by its convergents. */
static double fraction_slope(double a, double x) {
  const double b = x + 1 - a;
  part p0 = {0, 0}, q0 = {1, 0}, p1 = {1, 0}, q1 = {b, -1};
  double value = 1 / b, slope = 1 / (b * b);
  for (int k = 1; k < MOST_TERMS; k++) {
    const double step = -k * (k - a), level = b + 2 * k;
    const part p2 = next_part(p0, p1, step, level, k), q2 = next_part(q0, q1, step, level, k);
    const double made = p2.value / q2.value, turned = (p2.slope - made * q2.slope) / q2.value;
    /* The roundings of convergents keep them moving by a few units. */
    const int settled = fabs(made - value) <= 0x1p-49 * fabs(made) && fabs(turned - slope) <= 0x1p-49 * fabs(turned);
    value = made;
    slope = turned;
    if (settled) break;
    const double factor = fabs(q2.value) > 0x1p200 ? 0x1p-200 : 1;
    p0 = scaled(p1, factor);
    q0 = scaled(q1, factor);
    p1 = scaled(p2, factor);
    q1 = scaled(q2, factor);
  }
  return x * (value * (log(x) - tf_digamma(a)) + slope);
}

static double gamma_slope(double a, double x) {
  if (a > 0 && x == 0) return 0;
  if (!(a > 0 && x > 0) || isinf(a) || isinf(x)) return NAN;
  return x < a + 1 ? series_slope(a, x) : fraction_slope(a, x);
}

#define DEFINE(type, T)                                                                                              \
  static T gamma_slope_##type##_of(T alpha, T sample) { return (T)gamma_slope((double)alpha, (double)sample); }      \
  TF_COSTLY_LOOP2(gamma_slope_##type, T, T, gamma_slope_##type##_of(x, y))                                           \
  TF_BROADCAST_KERNEL(gamma_slope_##type, 2)

DEFINE(float32, float)
DEFINE(float64, double)

TF_TABLE(binary_gamma_slope) = {TF_ENTRY(gamma_slope_float32), TF_ENTRY(gamma_slope_float64), TF_END};
