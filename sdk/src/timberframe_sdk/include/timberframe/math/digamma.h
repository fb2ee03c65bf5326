/* The derivative of log(gamma(x)), which the functions of one operand and those of two share. */
#ifndef TIMBERFRAME_MATH_DIGAMMA_H
#define TIMBERFRAME_MATH_DIGAMMA_H

#include <timberframe/math/library.h>

#define TF_PI 0x1.921fb54442d18p+1

/* Up to 10 by the recurrence psi(x) = psi(x + 1) - 1 / x, from there by the asymptotic series (DLMF 5.11.2). */
static inline double tf_digamma_positive(double x) {
  double shift = 0.0;
  for (; x < 10.0; x += 1.0) shift += 1.0 / x;
  double z = 1.0 / (x * x);
  /* B_2k / 2k */
  double series = -3617.0 / 8160.0;
  series = series * z + 1.0 / 12.0;
  series = series * z - 691.0 / 32760.0;
  series = series * z + 1.0 / 132.0;
  series = series * z - 1.0 / 240.0;
  series = series * z + 1.0 / 252.0;
  series = series * z - 1.0 / 120.0;
  series = series * z + 1.0 / 12.0;
  return log(x) - 0.5 / x - series * z - shift;
}

/* Negative numbers by reflection: psi(x) = psi(1 - x) - pi / tan(pi x). NaN at the poles. */
static inline double tf_digamma(double x) {
  if (x > 0.0) return tf_digamma_positive(x);
  double fraction = x - rint(x);
  if (!(fraction != 0.0)) return TF_NAN64;
  return tf_digamma_positive(1.0 - x) - TF_PI / tan(TF_PI * fraction);
}

#endif
