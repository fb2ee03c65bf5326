/* log |gamma(x)| of float64, to the last digits also about its roots, where libraries keep a fixed error alone. */
#ifndef TIMBERFRAME_MATH_LOG_GAMMA_H
#define TIMBERFRAME_MATH_LOG_GAMMA_H

#include <timberframe/math/bits.h>
#include <timberframe/math/zeta.h>

/* How far the roots lie from their nearest integer -m, for m from 2 to 17 the one below it and the one above, each as a
 * sum of two doubles, from mpmath with 60 digits; 0 where there is none. */
TF_STATIC_TABLE double tf_log_gamma_roots[] = {
  -0x1.d3fe4b007c361p-2, 0x1.541360cea0e6p-56, 0.0, 0.0,
  -0x1.260dbc9e59af8p-3, 0x1.1d065994b0991p-58, 0x1.025f7af2137fap-2, -0x1.7995a4b4641ebp-56,
  -0x1.4273c2ccac062p-5, 0x1.e307a790f3f77p-59, 0x1.6e3aae0f406bdp-5, 0x1.e5753daddb926p-61,
  -0x1.0d4afe16db219p-7, -0x1.498adcb2a729cp-61, 0x1.1510b222a0657p-7, 0x1.e5eab7f12cef6p-61,
  -0x1.6b25897c8ced8p-10, -0x1.f0b65b458e173p-66, 0x1.6d0a6e0bf2a09p-10, -0x1.4ed62cbd31eep-64,
  -0x1.9fef6ff0f5be9p-13, 0x1.be919233c3eaap-67, 0x1.a044a3c880185p-13, 0x1.d949a3dc02de1p-68,
  -0x1.a01459fc9f60dp-16, 0x1.30c4f8c4dea26p-70, 0x1.a01fa98c3c356p-16, 0x1.7d4add4f3562dp-72,
  -0x1.71dda3ec36b6cp-19, -0x1.0ffb70d477adfp-74, 0x1.71ded0bf801bdp-19, -0x1.3a55d249679f9p-74,
  -0x1.27e4eee649ed1p-22, -0x1.d95e15441e031p-76, 0x1.27e50808cbe75p-22, 0x1.1885afab83963p-76,
  -0x1.ae6454c576597p-26, 0x1.90015bf1b415cp-80, 0x1.ae64583932495p-26, -0x1.a55b7a31a0b4ap-81,
  -0x1.1eed8ee62acf8p-29, -0x1.e04a1e70f241cp-85, 0x1.1eed8f18f0438p-29, -0x1.acc3d3c978bd8p-84,
  -0x1.612461380cd08p-33, 0x1.17237e0e47fbdp-87, 0x1.6124613d00d0bp-33, 0x1.001c54155b96cp-87,
  -0x1.93974a8bd29cfp-37, 0x1.09d47384560edp-91, 0x1.93974a8c3cf6cp-37, -0x1.f04e88bb6e247p-91,
  -0x1.ae7f3e7337a1dp-41, 0x1.ef83d0b08e728p-95, 0x1.ae7f3e733f622p-41, -0x1.81b8fc4e9b9acp-95,
  -0x1.ae7f3e733b428p-45, -0x1.25fc9dc8f8bbep-99, 0x1.ae7f3e733bc16p-45, -0x1.2e72e4d113627p-100,
  -0x1.952c77030ad11p-49, -0x1.db2968e993b05p-106, 0x1.952c77030ad84p-49, -0x1.c46a08a2e008bp-104,
};

/* With x = -m + s + u and s a root, by the reflection formula (DLMF 5.5.3) and y = 1 + m - s:
 * log |gamma(x)| = log gamma(y) - log gamma(y - u) - log(sin(pi (s + u)) / sin(pi s)),
 * the first two by the Taylor series of log gamma at y (DLMF 5.7.3). */
static inline double tf_exact_log_gamma(double x) {
  if (!(x < -2.0 && x > -17.5)) return tf_log_gamma_f64(x);
  const double m = rint(-x), d = x + m;
  const int row = 4 * ((int)m - 2) + (d > 0.0 ? 2 : 0);
  const double s = tf_log_gamma_roots[row], u = (d - s) - tf_log_gamma_roots[row + 1];
  if (!(tf_abs_f64(u) < 0.5 * tf_abs_f64(s))) return tf_log_gamma_f64(x);
  const double y = 1.0 + m - s, half_sine = sin(0.5 * TF_PI * u);
  const double turned = sin(TF_PI * u) / tan(TF_PI * s) - 2.0 * half_sine * half_sine;
  double series = 0.0, power = u;
  for (int k = 2; k < 16; k++) {
    power *= u;
    series += tf_positive_zeta((double)k, y) * power / k;
  }
  return (tf_digamma_positive(y) * u - series) - log1p(turned);
}

#endif
