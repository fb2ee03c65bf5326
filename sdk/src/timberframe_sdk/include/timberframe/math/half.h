/* Exact conversions between float16, bfloat16 and float32, by integer arithmetic that compilers vectorise. In C alone:
 * OpenCL C and CUDA C++ have their own.
 *
 * To float32 every value is exact. From float32 the result is rounded to nearest, ties to even, subnormal results
 * included; what is too large becomes infinity. A NaN stays a NaN with its sign and becomes quiet.
 * float64 goes through float32 (TensorFlow's rule). */
#ifndef TIMBERFRAME_MATH_HALF_H
#define TIMBERFRAME_MATH_HALF_H

#include <timberframe/math/language.h>

typedef uint16_t tf_float16;
typedef uint16_t tf_bfloat16;

static inline uint32_t tf_bits_float32(float x) {
  return (uint32_t)tf_bits_of_f32(x);
}

static inline float tf_float32_from_bits(uint32_t bits) {
  return tf_f32_of_bits((int32_t)bits);
}

static inline float tf_float32_from_bfloat16(tf_bfloat16 h) {
  return tf_float32_from_bits((uint32_t)h << 16);
}

static inline tf_bfloat16 tf_bfloat16_from_float32(float x) {
  uint32_t bits = tf_bits_float32(x);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  uint32_t quiet = bits >> 16 | 0x40u;
  return (tf_bfloat16)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float tf_float32_from_float16(tf_float16 h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t magnitude = h & 0x7fffu;
  /* The exponent's bias grows by 112; infinity and NaN, whose exponent is all ones, by twice that. */
  uint32_t bias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;
  uint32_t normal = (magnitude << 13) + bias;
  /* A subnormal is magnitude * 2^-24: put that below the leading bit of 0.5, then take 0.5 away. */
  uint32_t subnormal = tf_bits_float32(tf_float32_from_bits(0x3f000000u + magnitude) - 0.5f);
  return tf_float32_from_bits(sign | (magnitude < 0x400u ? subnormal : normal));
}

static inline tf_float16 tf_float16_from_float32(float x) {
  uint32_t bits = tf_bits_float32(x);
  uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  /* The carry of the rounding may run into the exponent, up to infinity: that is the right result. */
  uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  /* Below 2^-14 the unit is 2^-24, which is the unit of floats in [0.5, 1): the addition rounds. */
  uint32_t subnormal = tf_bits_float32(tf_float32_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (tf_float16)(sign | (magnitude >= 0x47800000u ? special : finite));
}

#endif
