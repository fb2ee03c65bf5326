/* The regularised incomplete beta function, in float64. */
#ifndef TIMBERFRAME_MATH_BETA_H
#define TIMBERFRAME_MATH_BETA_H

#include <timberframe/math/bits.h>
#include <timberframe/math/library.h>

#define TF_BETA_SMALLEST 1e-300

static inline double tf_away_from_zero(double x) { return tf_abs_f64(x) < TF_BETA_SMALLEST ? TF_BETA_SMALLEST : x; }

/* The continued fraction by Lentz's method (DLMF 8.17.22); about the root of the larger parameter many steps,
 * until one changes no more than its roundings. */
static inline double tf_beta_fraction(double a, double b, double x) {
  double c = 1.0, d = 1.0 / tf_away_from_zero(1.0 - (a + b) * x / (a + 1.0)), h = d;
  for (double m = 1.0; m < 20000.0; m += 1.0) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / tf_away_from_zero(1.0 + even * d);
    c = tf_away_from_zero(1.0 + even / c);
    const double middle = h * d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / tf_away_from_zero(1.0 + odd * d);
    c = tf_away_from_zero(1.0 + odd / c);
    const double next = middle * d * c;
    const int done = !(tf_abs_f64(next - h) > 0x1p-49 * tf_abs_f64(next));
    h = next;
    if (done) break;
  }
  return h;
}

static inline double tf_beta(double a, double b, double x) {
  if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return TF_NAN64;
  if (x == 0.0 || x == 1.0) return x;
  if (a == TF_INFINITY64 || b == TF_INFINITY64) return TF_NAN64;
  const double whole = tf_log_gamma_f64(a + b) - tf_log_gamma_f64(a) - tf_log_gamma_f64(b);
  const double front = exp(whole + a * log(x) + b * log1p(-x));
  if (x > (a + 1.0) / (a + b + 2.0)) return front == 0.0 ? 1.0 : 1.0 - front * tf_beta_fraction(b, a, 1.0 - x) / b;
  return front == 0.0 ? 0.0 : front * tf_beta_fraction(a, b, x) / a;
}

#endif
