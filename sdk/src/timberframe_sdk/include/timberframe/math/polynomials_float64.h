/* Polynomials of the float64 kernels. Written by tools/fit_polynomials.py; do not edit. */
#ifndef TIMBERFRAME_MATH_POLYNOMIALS_FLOAT64_H
#define TIMBERFRAME_MATH_POLYNOMIALS_FLOAT64_H

#include <timberframe/math/fma.h>

/* (exp(x) - 1 - x) / x^2 for x in [-0.34692, 0.34692]; relative error at most 2^-61.59. */
static inline double tf_exp_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  double x8 = x4 * x4;
  return tf_fma_f64(tf_fma_f64(0x1.1f2a737efd8c2p-29, x2, tf_fma_f64(0x1.af5d402b4772p-26, x, 0x1.27e5027bc86cep-22)),
    x8, tf_fma_f64(tf_fma_f64(tf_fma_f64(0x1.71ddf92431d5dp-19, x, 0x1.a01a0199ccd7p-16), x2,
    tf_fma_f64(0x1.a01a01af9e8edp-13, x, 0x1.6c16c16c174afp-10)), x4, tf_fma_f64(tf_fma_f64(0x1.111111110f713p-7, x,
    0x1.5555555555558p-5), x2, tf_fma_f64(0x1.5555555555559p-3, x, 0x1p-1))));
}

/* (sinh(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 1.002]; relative error at most 2^-61.76. */
static inline double tf_sinh_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  return tf_fma_f64(tf_fma_f64(0x1.b5caf5f04dd23p-41, x2, tf_fma_f64(0x1.6116ef55d1e64p-33, x, 0x1.ae646ffcb2628p-26)),
    x4, tf_fma_f64(tf_fma_f64(0x1.71de3a3b0332ep-19, x, 0x1.a01a01a037268p-13), x2, tf_fma_f64(0x1.111111111101ep-7, x,
    0x1.5555555555556p-3)));
}

/* (log(1 + x) - x + x^2 / 2) / x^3 for x in [-0.292894, 0.414215]; relative error at most 2^-56.59. */
static inline double tf_log_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  double x8 = x4 * x4;
  double x16 = x8 * x8;
  return tf_fma_f64(tf_fma_f64(0x1.ac52f45c7554ap-6, x2, tf_fma_f64(-0x1.e9f541e0e1543p-5, x, 0x1.0a6416a72ae8cp-4)),
    x16, tf_fma_f64(tf_fma_f64(tf_fma_f64(tf_fma_f64(-0x1.d127689f2d41dp-5, x, 0x1.d05ad6b0bc15ep-5), x2,
    tf_fma_f64(-0x1.fba04c88e5e12p-5, x, 0x1.11cce50011ed5p-4)), x4, tf_fma_f64(tf_fma_f64(-0x1.24d7619dad8e7p-4, x,
    0x1.3b0b8c9e64041p-4), x2, tf_fma_f64(-0x1.5550ed58555bp-4, x, 0x1.745d3ee369f3ep-4))), x8,
    tf_fma_f64(tf_fma_f64(tf_fma_f64(-0x1.9999c27510ec1p-4, x, 0x1.c71c71e20a79ap-4), x2,
    tf_fma_f64(-0x1.ffffff2bc5494p-4, x, 0x1.249249229f76fp-3)), x4, tf_fma_f64(tf_fma_f64(-0x1.555555566b769p-3, x,
    0x1.999999999f7e6p-3), x2, tf_fma_f64(-0x1.fffffffffef1p-3, x, 0x1.5555555555533p-2)))));
}

/* (sin(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.618085]; relative error at most 2^-57.88. */
static inline double tf_sin_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  return tf_fma_f64(tf_fma_f64(0x1.5d8b75df09db1p-33, x, -0x1.ae5e4bdabe0c6p-26), x4,
    tf_fma_f64(tf_fma_f64(0x1.71de35557beedp-19, x, -0x1.a01a019be95eep-13), x2, tf_fma_f64(0x1.111111110f731p-7, x,
    -0x1.5555555555548p-3)));
}

/* (cos(sqrt(x)) - 1 + x / 2) / x^2 for x in [0.0, 0.618085]; relative error at most 2^-63.89. */
static inline double tf_cos_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  return tf_fma_f64(tf_fma_f64(-0x1.8fa5555076ceep-37, x, 0x1.1ee9d9c99c6cdp-29), x4,
    tf_fma_f64(tf_fma_f64(-0x1.27e4f7ef1098cp-22, x, 0x1.a01a019c8c7f7p-16), x2, tf_fma_f64(-0x1.6c16c16c15005p-10, x,
    0x1.555555555554bp-5)));
}

/* (asin(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.25]; relative error at most 2^-55.89. */
static inline double tf_asin_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  double x8 = x4 * x4;
  return tf_fma_f64(tf_fma_f64(tf_fma_f64(0x1.056d8c9dda43p-5, x, -0x1.09d459ef80bbfp-6), x2,
    tf_fma_f64(0x1.3ff5eb19bd77p-6, x, 0x1.abcce2c69a9a4p-8)), x8,
    tf_fma_f64(tf_fma_f64(tf_fma_f64(0x1.8ec35546b20b2p-7, x, 0x1.c6fdb297f4ff6p-7), x2,
    tf_fma_f64(0x1.1c6be271d36aep-6, x, 0x1.6e89f4330d1ep-6)), x4, tf_fma_f64(tf_fma_f64(0x1.f1c72c3976fd9p-6, x,
    0x1.6db6db4279208p-5), x2, tf_fma_f64(0x1.333333336e821p-4, x, 0x1.555555555539p-3))));
}

/* (atan(sqrt(x)) / sqrt(x) - 1) / x for x in [0.0, 0.171744]; relative error at most 2^-54.63. */
static inline double tf_atan_poly_f64(double x) {
  double x2 = x * x;
  double x4 = x2 * x2;
  double x8 = x4 * x4;
  return tf_fma_f64(tf_fma_f64(0x1.5c101b5c59d8cp-6, x, -0x1.64fe1f463456ep-5), x8,
    tf_fma_f64(tf_fma_f64(tf_fma_f64(0x1.d24c0e10854abp-5, x, -0x1.100457af15152p-4), x2,
    tf_fma_f64(0x1.3afc1d04d1f14p-4, x, -0x1.745bc17f693ffp-4)), x4, tf_fma_f64(tf_fma_f64(0x1.c71c65bd87f06p-4, x,
    -0x1.2492490546da6p-3), x2, tf_fma_f64(0x1.9999999948d63p-3, x, -0x1.5555555555313p-2))));
}

#endif
