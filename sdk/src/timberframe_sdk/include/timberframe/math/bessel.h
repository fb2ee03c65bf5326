/* The modified Bessel functions of the first kind, of orders 0 and 1, and those scaled by exp(-|x|), in float64. */
#ifndef TIMBERFRAME_MATH_BESSEL_H
#define TIMBERFRAME_MATH_BESSEL_H

#include <timberframe/math/bits.h>
#include <timberframe/math/library.h>

#define TF_BESSEL_LARGE 30.0
#define TF_ROOT_OF_2_PI 0x1.40d931ff62705p+1

/* The series of positive terms (DLMF 10.25.2). */
static inline double tf_bessel_series(int order, double a) {
  const double quarter = a * a / 4.0;
  double term = order ? a / 2.0 : 1.0, total = term;
  for (int k = 1; k < 80; k++) {
    term *= quarter / ((double)k * (k + order));
    total += term;
    if (term <= 0x1p-56 * total) break;
  }
  return total;
}

/* What e^a is multiplied by where a is large (DLMF 10.40.1). */
static inline double tf_bessel_expansion(int order, double a) {
  double term = 1.0, total = 1.0;
  for (int k = 1; k < 24; k++) {
    const double odd = 2.0 * k - 1.0;
    term *= (odd * odd - 4.0 * order) / (8.0 * k * a);
    total += term;
  }
  return total / (TF_ROOT_OF_2_PI * sqrt(a));
}

static inline double tf_bessel(int order, int scaled, double x) {
  const double a = tf_abs_f64(x);
  double value;
  if (a < TF_BESSEL_LARGE) {
    value = tf_bessel_series(order, a);
    if (scaled) value *= exp(-a);
  } else {
    value = tf_bessel_expansion(order, a);
    if (!scaled) {
      const double root = exp(a / 2.0); /* e^a overflows before the function does */
      value = a == TF_INFINITY64 ? a : root * value * root;
    }
  }
  return order && (x < 0.0 || (x == 0.0 && 1.0 / x < 0.0)) ? -value : value;
}

static inline double tf_bessel_i0(double x) { return tf_bessel(0, 0, x); }

static inline double tf_bessel_i0e(double x) { return tf_bessel(0, 1, x); }

static inline double tf_bessel_i1(double x) { return tf_bessel(1, 0, x); }

static inline double tf_bessel_i1e(double x) { return tf_bessel(1, 1, x); }

#endif
