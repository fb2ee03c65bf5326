/* The regularised incomplete gamma functions P(a, x) and Q = 1 - P, and dP/da, in float64. */
#ifndef TIMBERFRAME_MATH_INCOMPLETE_GAMMA_H
#define TIMBERFRAME_MATH_INCOMPLETE_GAMMA_H

#include <timberframe/math/gamma_slope.h>
#include <timberframe/math/library.h>

/* x^a e^-x / gamma(a), the density times x. */
static inline double tf_gamma_front(double a, double x) { return exp(a * log(x) - x - tf_log_gamma_f64(a)); }

/* P / front * a: the sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.7.1). */
static inline double tf_lower_gamma_series(double a, double x) {
  double total = 1.0, term = 1.0;
  for (double n = 1.0; n < TF_GAMMA_SLOPE_TERMS; n += 1.0) {
    term *= x / (a + n);
    total += term;
    if (term <= 0x1p-54 * total) break;
  }
  return total;
}

/* Q / front: the continued fraction of DLMF 8.9.2, by its convergents. */
static inline double tf_upper_gamma_fraction(double a, double x) {
  const double b = x + 1.0 - a;
  double p0 = 0.0, q0 = 1.0, p1 = 1.0, q1 = b, value = 1.0 / b;
  for (double k = 1.0; k < TF_GAMMA_SLOPE_TERMS; k += 1.0) {
    const double step = -k * (k - a), level = b + 2.0 * k;
    const double p2 = level * p1 + step * p0, q2 = level * q1 + step * q0;
    const double made = p2 / q2;
    /* The roundings of convergents keep them moving by a few units. */
    const int settled = !(tf_abs_f64(made - value) > 0x1p-51 * tf_abs_f64(made));
    value = made;
    if (settled) break;
    const double factor = tf_abs_f64(q2) > 0x1p200 ? 0x1p-200 : 1.0;
    p0 = p1 * factor;
    q0 = q1 * factor;
    p1 = p2 * factor;
    q1 = q2 * factor;
  }
  return value;
}

static inline double tf_incomplete_gamma(double a, double x, int upper) {
  if (x == 0.0 && !(upper && a <= 0.0)) return upper ? 1.0 : 0.0;
  const int endless = a == TF_INFINITY64, all = x == TF_INFINITY64;
  if (!(a > 0.0 && x >= 0.0) || (endless && all)) return TF_NAN64;
  if (endless || all) return all != upper ? 1.0 : 0.0;
  const double front = tf_gamma_front(a, x);
  const int lower = x < a + 1.0;
  double part = 0.0;
  if (front > 0.0) part = lower ? front * tf_lower_gamma_series(a, x) / a : front * tf_upper_gamma_fraction(a, x);
  return lower != upper ? part : 1.0 - part;
}

static inline double tf_igamma(double a, double x) { return tf_incomplete_gamma(a, x, 0); }

static inline double tf_igammac(double a, double x) { return tf_incomplete_gamma(a, x, 1); }

static inline double tf_igamma_slope(double a, double x) {
  if (x == 0.0) return 0.0;
  const int endless = a == TF_INFINITY64, all = x == TF_INFINITY64;
  if (!(a > 0.0 && x > 0.0) || (endless && all)) return TF_NAN64;
  if (endless || all) return 0.0;
  const double density = tf_gamma_front(a, x) / x;
  return density > 0.0 ? -density * tf_gamma_slope(a, x) : 0.0;
}

#endif
