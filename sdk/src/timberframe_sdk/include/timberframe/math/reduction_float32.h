/* Arguments of sin, cos and tan in float32, reduced to [-pi/4, pi/4] and a quadrant.
 *
 * Up to TF_TRIGONOMETRIC_FAST that takes three multiplications; larger ones need the bits of 2/pi (Payne and Hanek's
 * method), one element at a time. */
#ifndef TIMBERFRAME_MATH_REDUCTION_FLOAT32_H
#define TIMBERFRAME_MATH_REDUCTION_FLOAT32_H

#include <timberframe/math/precision_float32.h>
#include <timberframe/math/trigonometric.h>

#define TF_TRIGONOMETRIC_FAST 0x1p16f

static inline float tf_reduce_half_pi_f32(float a, int32_t *quadrant) {
#if TF_HAS_FMA
  /* pi/2 in three parts of 24 bits. The first difference is exact: it is below 1 and a multiple of 2^-24. */
  float t = tf_fma_f32(a, 0x1.45f306p-1f, TF_ROUNDER);
  float n = t - TF_ROUNDER;
  *quadrant = tf_int_of_f32(t);
  float r = tf_fma_f32(n, -TF_HALF_PI, a);
  r = tf_fma_f32(n, -TF_HALF_PI_LOW, r);
  return tf_fma_f32(n, -TF_HALF_PI_LOWEST, r);
#else
  /* pi/2 in two parts, the first of 33 bits, so that its products with q are exact in float64. */
  double t = (double)a * 0x1.45f306dc9c883p-1 + TF_ROUNDER64;
  double n = t - TF_ROUNDER64;
  *quadrant = (int32_t)tf_int_of_f64(t);
  return (float)((double)a - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34);
#endif
}

/* 2/pi = 0.[word 1][word 2]... in base 2^32. */
TF_STATIC_TABLE uint32_t tf_two_over_pi[] = {
  0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
};

/* The same for any finite a from 16 on. */
static inline float tf_reduce_large_half_pi_f32(float a, int32_t *quadrant) {
  int32_t bits = tf_int_of_f32(a);
  uint64_t mantissa = (uint64_t)((bits & 0x7fffff) | 0x800000);
  /* a = mantissa 2^k; bits of 2/pi that are worth 4 or more after the multiplication are left out. */
  int k = (bits >> 23) - 150;
  int start = k + 30, word = start >> 5, shift = start & 31;
  uint64_t high = ((uint64_t)tf_two_over_pi[word] << 32 | tf_two_over_pi[word + 1]) << shift;
  uint64_t low = ((uint64_t)tf_two_over_pi[word + 2] << 32 | tf_two_over_pi[word + 3]) << shift;
  if (shift) high |= tf_two_over_pi[word + 2] >> (32 - shift);
  uint64_t product = mantissa * (low >> 32);
  product = mantissa * (high & 0xffffffffu) + (product >> 32);
  uint64_t fraction = product & 0xffffffffu;
  product = mantissa * (high >> 32) + (product >> 32);
  fraction |= product << 32; /* a / (pi/2) modulo 4, in units of 2^-62 */
  *quadrant = (int32_t)((fraction + ((uint64_t)1 << 61)) >> 62);
#ifndef TF_NO_FLOAT64
  return (float)((double)(int64_t)(fraction << 2) * (0x1.921fb54442d18p+0 * 0x1p-64));
#else
  return (float)(int64_t)(fraction << 2) * (0x1.921fb6p+0f * 0x1p-64f);
#endif
}

/* For |x| above TF_TRIGONOMETRIC_FAST, infinity and NaN. */

static inline float tf_sin_large_f32(float x) {
  int32_t quadrant;
  if (!(tf_abs_f32(x) < TF_INFINITY)) return x - x;
  float r = tf_reduce_large_half_pi_f32(tf_abs_f32(x), &quadrant);
  return tf_flip_sign_f32(tf_sin_quadrant_f32(r, quadrant), x);
}

static inline float tf_cos_large_f32(float x) {
  int32_t quadrant;
  if (!(tf_abs_f32(x) < TF_INFINITY)) return x - x;
  float r = tf_reduce_large_half_pi_f32(tf_abs_f32(x), &quadrant);
  return tf_sin_quadrant_f32(r, quadrant + 1);
}

static inline float tf_tan_large_f32(float x) {
  int32_t quadrant;
  if (!(tf_abs_f32(x) < TF_INFINITY)) return x - x;
  float r = tf_reduce_large_half_pi_f32(tf_abs_f32(x), &quadrant);
  return tf_flip_sign_f32(tf_tan_quadrant_f32(r, quadrant), x);
}

/* For every argument. */

static inline float tf_sin_f32(float x) {
  return tf_abs_f32(x) <= TF_TRIGONOMETRIC_FAST ? tf_sin_fast_f32(x) : tf_sin_large_f32(x);
}

static inline float tf_cos_f32(float x) {
  return tf_abs_f32(x) <= TF_TRIGONOMETRIC_FAST ? tf_cos_fast_f32(x) : tf_cos_large_f32(x);
}

static inline float tf_tan_f32(float x) {
  return tf_abs_f32(x) <= TF_TRIGONOMETRIC_FAST ? tf_tan_fast_f32(x) : tf_tan_large_f32(x);
}

#endif
