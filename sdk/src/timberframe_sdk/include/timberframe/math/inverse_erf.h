/* The inverses of erf and of the normal distribution function, in float64. */
#ifndef TIMBERFRAME_MATH_INVERSE_ERF_H
#define TIMBERFRAME_MATH_INVERSE_ERF_H

#include <timberframe/math/bits.h>
#include <timberframe/math/library.h>

#define TF_ROOT_2 0x1.6a09e667f3bcdp+0
#define TF_HALF_ROOT_PI 0x1.c5bf891b4ef6bp-1

/* y >= 0 with erf(y) = a and erfc(y) = c, where a + c = 1 and the smaller of the two is exact.
 *
 * Winitzki's formula (A handy approximation for the error function and its inverse, 2008) is right to 1 in 500; three
 * steps of Newton's iteration, each of which doubles the digits, do the rest. From 1/2 on it works on log(erfc(y)),
 * which is nearly quadratic. */
static inline double tf_inverse_erf(double a, double c) {
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

static inline double tf_erfinv(double x) {
  double a = tf_abs_f64(x);
  if (!(a < 1.0)) return a == 1.0 ? tf_copy_sign_f64(TF_INFINITY64, x) : TF_NAN64;
  return tf_copy_sign_f64(tf_inverse_erf(a, 1.0 - a), x);
}

/* The quantile of the normal distribution: -sqrt(2) times the inverse of erfc at 2p. */
static inline double tf_ndtri(double p) {
  if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -TF_INFINITY64 : p == 1.0 ? TF_INFINITY64 : TF_NAN64;
  double q = p < 0.5 ? p : 1.0 - p;
  double y = TF_ROOT_2 * tf_inverse_erf(1.0 - 2.0 * q, 2.0 * q);
  return p < 0.5 ? -y : y;
}

#endif
