/* How a gamma number moves with its shape parameter when the probability below it stays, in float64: -(dP/da) / p with
 * P the regularised lower incomplete gamma function and p its density. */
#ifndef TIMBERFRAME_MATH_GAMMA_SLOPE_H
#define TIMBERFRAME_MATH_GAMMA_SLOPE_H

#include <timberframe/math/bits.h>
#include <timberframe/math/digamma.h>

#define TF_GAMMA_SLOPE_TERMS 20000

/* P = p x / a S with S the sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.7.1). */
static inline double tf_series_slope(double a, double x) {
  double total = 1, slope = 0, term = 1, harmonic = 0;
  for (int n = 1; n < TF_GAMMA_SLOPE_TERMS; n++) {
    const double k = a + n;
    term *= x / k;
    harmonic -= 1 / k;
    const double change = term * harmonic;
    total += term;
    slope += change;
    if (tf_abs_f64(change) <= 0x1p-53 * tf_abs_f64(slope)) break;
  }
  return -x / a * (total * (log(x) - tf_digamma(a + 1)) + slope);
}

/* A numerator or denominator of a convergent, and its derivative by a. */
typedef struct tf_convergent {
  double value, slope;
} tf_convergent;

static inline tf_convergent tf_next_convergent(tf_convergent before, tf_convergent last, double step, double level,
                                               double k) {
  const tf_convergent made = {level * last.value + step * before.value,
                              level * last.slope - last.value + step * before.slope + k * before.value};
  return made;
}

static inline tf_convergent tf_scaled(tf_convergent x, double factor) {
  const tf_convergent made = {x.value * factor, x.slope * factor};
  return made;
}

/* 1 - P = p x F with F the continued fraction of DLMF 8.9.2, by its convergents. */
static inline double tf_fraction_slope(double a, double x) {
  const double b = x + 1 - a;
  tf_convergent p0 = {0, 0}, q0 = {1, 0}, p1 = {1, 0}, q1 = {b, -1};
  double value = 1 / b, slope = 1 / (b * b);
  for (int k = 1; k < TF_GAMMA_SLOPE_TERMS; k++) {
    const double step = -k * (k - a), level = b + 2 * k;
    const tf_convergent p2 = tf_next_convergent(p0, p1, step, level, k);
    const tf_convergent q2 = tf_next_convergent(q0, q1, step, level, k);
    const double made = p2.value / q2.value, turned = (p2.slope - made * q2.slope) / q2.value;
    /* The roundings of convergents keep them moving by a few units. */
    const int settled = tf_abs_f64(made - value) <= 0x1p-49 * tf_abs_f64(made) &&
                        tf_abs_f64(turned - slope) <= 0x1p-49 * tf_abs_f64(turned);
    value = made;
    slope = turned;
    if (settled) break;
    const double factor = tf_abs_f64(q2.value) > 0x1p200 ? 0x1p-200 : 1;
    p0 = tf_scaled(p1, factor);
    q0 = tf_scaled(q1, factor);
    p1 = tf_scaled(p2, factor);
    q1 = tf_scaled(q2, factor);
  }
  return x * (value * (log(x) - tf_digamma(a)) + slope);
}

static inline double tf_gamma_slope(double a, double x) {
  if (a > 0 && x == 0) return 0;
  if (!(a > 0 && x > 0) || a == TF_INFINITY64 || x == TF_INFINITY64) return TF_NAN64;
  return x < a + 1 ? tf_series_slope(a, x) : tf_fraction_slope(a, x);
}

#endif
