/* The width of this instruction set's vectors, and vectors that are only partly filled. */
#ifndef TIMBERFRAME_CPU_LANES_H
#define TIMBERFRAME_CPU_LANES_H

#include <stdint.h>
#include <string.h>

/* Before a loop whose turns do not depend on each other even where two pointers are equal (work in place). */
#ifdef __clang__
#define TF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TF_INDEPENDENT _Pragma("GCC ivdep")
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define TF_LANES32 16
#define TF_LANES64 8
#elif defined(__AVX2__)
#include <immintrin.h>
#define TF_LANES32 8
#define TF_LANES64 4
#else
#define TF_LANES32 4
#define TF_LANES64 2
#endif

/* Copies count < TF_LANES elements to or from an array of that many; what is not loaded becomes 0. */

static inline void tf_load_lanes32(float *lanes, const float *in, int64_t count) {
#if defined(__AVX512F__)
  _mm512_storeu_ps(lanes, _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), in));
#elif defined(__AVX2__)
  __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  _mm256_storeu_ps(lanes, _mm256_maskload_ps(in, mask));
#else
  for (int64_t i = 0; i < TF_LANES32; i++) lanes[i] = i < count ? in[i] : 0.0f;
#endif
}

static inline void tf_store_lanes32(float *out, const float *lanes, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), _mm512_loadu_ps(lanes));
#elif defined(__AVX2__)
  __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  _mm256_maskstore_ps(out, mask, _mm256_loadu_ps(lanes));
#else
  for (int64_t i = 0; i < count; i++) out[i] = lanes[i];
#endif
}

static inline void tf_load_lanes64(double *lanes, const double *in, int64_t count) {
#if defined(__AVX512F__)
  _mm512_storeu_pd(lanes, _mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), in));
#elif defined(__AVX2__)
  __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  _mm256_storeu_pd(lanes, _mm256_maskload_pd(in, mask));
#else
  for (int64_t i = 0; i < TF_LANES64; i++) lanes[i] = i < count ? in[i] : 0.0;
#endif
}

static inline void tf_store_lanes64(double *out, const double *lanes, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(out, (__mmask8)((1u << count) - 1), _mm512_loadu_pd(lanes));
#elif defined(__AVX2__)
  __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  _mm256_maskstore_pd(out, mask, _mm256_loadu_pd(lanes));
#else
  for (int64_t i = 0; i < count; i++) out[i] = lanes[i];
#endif
}

#endif
