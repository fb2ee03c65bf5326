/* Uniform numbers in [0, 1) from random bits. */
#ifndef TIMBERFRAME_RANDOM_UNIFORM_H
#define TIMBERFRAME_RANDOM_UNIFORM_H

#include <timberframe/math/language.h>

/* A number in [1, 2) with the low 23 bits as its mantissa, less 1. */
static inline float uniform_float32(uint32_t bits) {
  return tf_f32_of_bits((int32_t)((bits & 0x7fffffu) | 0x3f800000u)) - 1.0f;
}

/* The numbers of float16 and bfloat16: as many bits as their mantissas have. */
static inline float uniform_float16(uint32_t bits) { return (float)(int32_t)(bits & 0x3ffu) * 0x1p-10f; }
static inline float uniform_bfloat16(uint32_t bits) { return (float)(int32_t)(bits & 0x7fu) * 0x1p-7f; }

#ifndef TF_NO_FLOAT64
/* 20 bits of the first number above the 32 of the second. */
static inline double uniform_float64(uint32_t high, uint32_t low) {
  return tf_f64_of_bits((int64_t)((uint64_t)((high & 0xfffffu) | 0x3ff00000u) << 32 | low)) - 1.0;
}
#endif

#endif
