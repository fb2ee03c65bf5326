/* Vectors as wide as the instruction set's registers, through the vector extension of gcc and clang: wider ones would
 * be cut up by the compiler, lane by lane. */
#ifndef TIMBERFRAME_CPU_VECTORS_H
#define TIMBERFRAME_CPU_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif

/* The vector type `name`_vector, its load, and one value in all lanes. */
#define VECTOR_TYPE(name, type)                                          \
  typedef type name##_vector __attribute__((vector_size(VECTOR_BYTES))); \
  static inline name##_vector name##_load(const type *x) {               \
    name##_vector v;                                                     \
    memcpy(&v, x, sizeof v);                                             \
    return v;                                                            \
  }                                                                      \
  static inline name##_vector name##_spread(type x) {                    \
    return x - (name##_vector){0};                                       \
  }

/* Lane-wise extremes: max and min drop a NaN in b, the _nan ones take it. */
#define VECTOR_SELECT(name, mask_type, function, condition)                         \
  static inline name##_vector name##_##function(name##_vector a, name##_vector b) { \
    typedef mask_type mask_vector __attribute__((vector_size(VECTOR_BYTES)));       \
    const mask_vector m = (mask_vector)(condition);                                 \
    return (name##_vector)((m & (mask_vector)b) | (~m & (mask_vector)a));           \
  }
#define VECTOR_EXTREMES(name, mask_type)     \
  VECTOR_SELECT(name, mask_type, max, b > a) \
  VECTOR_SELECT(name, mask_type, min, b < a)
#define VECTOR_EXTREMES_NAN(name, mask_type)                  \
  VECTOR_SELECT(name, mask_type, max_nan, (b > a) | (b != b)) \
  VECTOR_SELECT(name, mask_type, min_nan, (b < a) | (b != b))

/* The same for floats in two instructions: max and min give their second operand where either is NaN, so only a NaN in
 * a needs to be kept. */
#if defined(__AVX512F__)
#define VECTOR_KEEP_NAN(name, type, suffix, function)                                       \
  static inline name##_vector name##_##function##_nan(name##_vector a, name##_vector b) {   \
    return (name##_vector)_mm512_mask_##function##_##suffix(                                \
      (type)a, _mm512_cmp_##suffix##_mask((type)a, (type)a, _CMP_ORD_Q), (type)a, (type)b); \
  }
#define VECTOR_FLOAT_EXTREMES                \
  VECTOR_KEEP_NAN(float32, __m512, ps, max)  \
  VECTOR_KEEP_NAN(float32, __m512, ps, min)  \
  VECTOR_KEEP_NAN(float64, __m512d, pd, max) \
  VECTOR_KEEP_NAN(float64, __m512d, pd, min)
#else
#define VECTOR_FLOAT_EXTREMES           \
  VECTOR_EXTREMES_NAN(float32, int32_t) \
  VECTOR_EXTREMES_NAN(float64, int64_t)
#endif
#define VECTOR_ADD(a, b) ((a) + (b))
#define VECTOR_MULTIPLY(a, b) ((a) * (b))
#define VECTOR_AND(a, b) ((a) & (b))
#define VECTOR_OR(a, b) ((a) | (b))

VECTOR_TYPE(float32, float)
VECTOR_TYPE(float64, double)
VECTOR_TYPE(int32, int32_t)
VECTOR_TYPE(int64, int64_t)
VECTOR_TYPE(uint8, uint8_t)
VECTOR_TYPE(uint32, uint32_t)
VECTOR_TYPE(uint64, uint64_t)

#endif
