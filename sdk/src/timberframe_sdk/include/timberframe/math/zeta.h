/* The Hurwitz zeta function and the derivatives of digamma, in float64. */
#ifndef TIMBERFRAME_MATH_ZETA_H
#define TIMBERFRAME_MATH_ZETA_H

#include <timberframe/math/digamma.h>

/* B_2j / (2j)! of the Euler-Maclaurin formula (DLMF 25.11.43), B being Bernoulli's numbers. */
TF_STATIC_TABLE double tf_zeta_coefficients[] = {
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
    77683.0 / 14101100039391805440000.0,
    -236364091.0 / 1693824136731743669452800000.0,
};

/* For x > 1 and q > 0: terms up to 10 + x, or till they no longer count; then the Euler-Maclaurin formula. Where x is
 * so large that there would be many terms, they vanish at once. */
static inline double tf_positive_zeta(double x, double q) {
  double total = 0.0, a = q;
  for (double k = 1.0; a < 10.0 + x; k += 1.0) {
    const double term = pow(a, -x);
    total += term;
    if (term <= 0x1p-60 * total) return total;
    a = q + k;
  }
  total += pow(a, 1.0 - x) / (x - 1.0); /* 1 - x is exact; a / (x - 1) may overflow */
  const double last = pow(a, -x);
  if (last == 0.0) return total; /* q is infinite, or the terms are too small to count */
  double factor = x * last / a, series = 0.0;
  for (int j = 0; j < 12; j++) {
    series += tf_zeta_coefficients[j] * factor;
    factor *= (x + 2 * j + 1) / a * ((x + 2 * j + 2) / a);
  }
  return total + (0.5 * last + series);
}

/* Terms below 0 are (-1)^x times the first of the zeta function from p = ceil(q) - q on, up to 1 - q. */
static inline double tf_zeta(double x, double q) {
  if (x == 1.0) return TF_INFINITY64;
  if (!(x > 1.0) || q != q) return TF_NAN64;
  if (q > 0.0) return tf_positive_zeta(x, q);
  const int even = fmod(x, 2.0) == 0.0;
  if (q == floor(q)) return even ? TF_INFINITY64 : TF_NAN64;
  if (x != floor(x)) return TF_NAN64;
  const double p = ceil(q) - q;
  const double below = tf_positive_zeta(x, p) - tf_positive_zeta(x, 1.0 - q);
  return tf_positive_zeta(x, 1.0 - p) + (even ? below : -below);
}

static inline double tf_polygamma(double n, double x) {
  if (n != floor(n) || !(n >= 0.0) || n == TF_INFINITY64) return TF_NAN64;
  if (n == 0.0) return tf_digamma(x);
  const double value = tgamma(n + 1.0) * tf_zeta(n + 1.0, x);
  return fmod(n, 2.0) == 1.0 ? value : -value;
}

#endif
