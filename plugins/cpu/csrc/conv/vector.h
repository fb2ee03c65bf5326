/* Vectors of the widest registers of the instruction set that a source is compiled for. */
#ifndef TIMBERFRAME_CPU_CONV_VECTOR_H
#define TIMBERFRAME_CPU_CONV_VECTOR_H

#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define TF_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define TF_VECTOR_BYTES 32
#else
#define TF_VECTOR_BYTES 16
#endif

/* The types with `unaligned` in their name may be loaded and stored at any address of an element. */
typedef float vector_float __attribute__((vector_size(TF_VECTOR_BYTES)));
typedef double vector_double __attribute__((vector_size(TF_VECTOR_BYTES)));
typedef uint32_t vector_int32 __attribute__((vector_size(TF_VECTOR_BYTES)));
typedef float unaligned_float __attribute__((vector_size(TF_VECTOR_BYTES), aligned(4), may_alias));
typedef double unaligned_double __attribute__((vector_size(TF_VECTOR_BYTES), aligned(8), may_alias));
typedef uint32_t unaligned_int32 __attribute__((vector_size(TF_VECTOR_BYTES), aligned(4), may_alias));

/* Half of such a vector, for what does not fill one. */
#if TF_VECTOR_BYTES > 16
#define TF_HALF_BYTES (TF_VECTOR_BYTES / 2)
#else
#define TF_HALF_BYTES TF_VECTOR_BYTES
#endif
typedef float half_float __attribute__((vector_size(TF_HALF_BYTES)));
typedef double half_double __attribute__((vector_size(TF_HALF_BYTES)));
typedef float unaligned_half_float __attribute__((vector_size(TF_HALF_BYTES), aligned(4), may_alias));
typedef double unaligned_half_double __attribute__((vector_size(TF_HALF_BYTES), aligned(8), may_alias));

/* Before a loop of at most 16 iterations that is to be unrolled completely, so that its arrays become registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* a * b + c, rounded once where the processor can. */
static inline vector_float multiply_add_float(vector_float a, vector_float b, vector_float c) {
#if defined(__AVX512F__)
  return (vector_float)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vector_float)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

static inline vector_double multiply_add_double(vector_double a, vector_double b, vector_double c) {
#if defined(__AVX512F__)
  return (vector_double)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (vector_double)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

static inline half_float multiply_add_half_float(half_float a, half_float b, half_float c) {
#if defined(__AVX512F__)
  return (half_float)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__FMA__)
  return (half_float)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#else
  return a * b + c;
#endif
}

static inline half_double multiply_add_half_double(half_double a, half_double b, half_double c) {
#if defined(__AVX512F__)
  return (half_double)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__FMA__)
  return (half_double)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
#else
  return a * b + c;
#endif
}

static inline vector_int32 multiply_add_int32(vector_int32 a, vector_int32 b, vector_int32 c) { return a * b + c; }

/* spoilt_<type>: 0 where all of `count` values, which fill whole registers, are finite, else NaN. */
#define SPOILT(NAME, T)                                                                                  \
  static inline T spoilt_##NAME(const T *values, int64_t count) {                                        \
    const int64_t lanes = TF_VECTOR_BYTES / sizeof(T);                                                   \
    vector_##NAME sums[4] = {{0}};                                                                       \
    T sum = 0;                                                                                           \
    int64_t i = 0;                                                                                       \
    for (; i + 4 * lanes <= count; i += 4 * lanes) {                                                     \
      UNROLL for (int v = 0; v < 4; v++) {                                                               \
        sums[v] += (vector_##NAME)*(const unaligned_##NAME *)(values + i + v * lanes) * 0;               \
      }                                                                                                  \
    }                                                                                                    \
    for (; i < count; i += lanes) sums[0] += (vector_##NAME)*(const unaligned_##NAME *)(values + i) * 0; \
    UNROLL for (int v = 0; v < 4; v++) {                                                                 \
      for (int64_t l = 0; l < lanes; l++) sum += sums[v][l];                                             \
    }                                                                                                    \
    return sum;                                                                                          \
  }
SPOILT(float, float)
SPOILT(double, double)
SPOILT(int32, uint32_t)
#undef SPOILT

#endif
