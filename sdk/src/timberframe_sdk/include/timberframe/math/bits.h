/* Floating-point numbers as their bits and back, and what is easiest done there. */
#ifndef TIMBERFRAME_MATH_BITS_H
#define TIMBERFRAME_MATH_BITS_H

#include <timberframe/math/language.h>

#define tf_int_of_f32 tf_bits_of_f32
#define tf_of_int_f32 tf_f32_of_bits
#define tf_int_of_f64 tf_bits_of_f64
#define tf_of_int_f64 tf_f64_of_bits

static inline float tf_abs_f32(float x) {
  return tf_of_int_f32(tf_int_of_f32(x) & INT32_MAX);
}

#ifndef TF_NO_FLOAT64
static inline double tf_abs_f64(double x) {
  return tf_of_int_f64(tf_int_of_f64(x) & INT64_MAX);
}
#endif

/* y, which is not negative or has x's sign already, with x's sign: what odd functions end with, so that -0 stays. */
static inline float tf_with_sign_f32(float y, float x) {
  return tf_of_int_f32(tf_int_of_f32(y) | (tf_int_of_f32(x) & INT32_MIN));
}

#ifndef TF_NO_FLOAT64
static inline double tf_with_sign_f64(double y, double x) {
  return tf_of_int_f64(tf_int_of_f64(y) | (tf_int_of_f64(x) & INT64_MIN));
}
#endif

/* y, its sign turned if x is negative. */
static inline float tf_flip_sign_f32(float y, float x) {
  return tf_of_int_f32(tf_int_of_f32(y) ^ (tf_int_of_f32(x) & INT32_MIN));
}

#ifndef TF_NO_FLOAT64
static inline double tf_flip_sign_f64(double y, double x) {
  return tf_of_int_f64(tf_int_of_f64(y) ^ (tf_int_of_f64(x) & INT64_MIN));
}
#endif

/* |y| with x's sign. */
static inline float tf_copy_sign_f32(float y, float x) {
  return tf_of_int_f32((tf_int_of_f32(y) & INT32_MAX) | (tf_int_of_f32(x) & INT32_MIN));
}

#ifndef TF_NO_FLOAT64
static inline double tf_copy_sign_f64(double y, double x) {
  return tf_of_int_f64((tf_int_of_f64(y) & INT64_MAX) | (tf_int_of_f64(x) & INT64_MIN));
}
#endif

/* A number whose unit is 1: added to a small one it rounds that to an integer, which then is the sum's low bits. */
#define TF_ROUNDER32 0x1.8p23f
#define TF_ROUNDER64 0x1.8p52

/* 2^n for n in the low bits of the sum above (whose own bits the shift drops). */
static inline float tf_power_of_two_f32(int32_t n) {
  return tf_of_int_f32((int32_t)((uint32_t)n << 23) + 0x3f800000);
}

#ifndef TF_NO_FLOAT64
static inline double tf_power_of_two_f64(int64_t n) {
  return tf_of_int_f64((int64_t)((uint64_t)n << 52) + 0x3ff0000000000000);
}
#endif

#endif
