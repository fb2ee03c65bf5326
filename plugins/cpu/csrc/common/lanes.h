/* The width of this instruction set's vectors, and vectors that are only partly filled. */
#ifndef TIMBERFRAME_CPU_LANES_H
#define TIMBERFRAME_CPU_LANES_H

#include <stdint.h>
#include <string.h>

/* Before a loop whose iterations do not depend on each other even where two pointers are equal (work in place). */
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

/* Copies count < TF_LANES elements to or from an array of that many; what is not loaded becomes 0.
 *
 * Powers of two are copied by plain loads and stores: a processor hands a plain store on to the next kernel's load at
 * once, a masked one only through the cache, which in a chain of kernels on four floats would take half of the time. */

#if defined(__AVX512F__)

static inline __m512 tf_partial32(const float *in, int64_t count) {
  switch (count) {
    case 1: return _mm512_zextps128_ps512(_mm_load_ss(in));
    case 2: return _mm512_zextps128_ps512(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)in)));
    case 4: return _mm512_zextps128_ps512(_mm_loadu_ps(in));
    case 8: return _mm512_zextps256_ps512(_mm256_loadu_ps(in));
    default: return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), in);
  }
}

static inline void tf_load_lanes32(float *lanes, const float *in, int64_t count) {
  _mm512_storeu_ps(lanes, tf_partial32(in, count));
}

static inline void tf_store_lanes32(float *out, const float *lanes, int64_t count) {
  __m512 v = _mm512_loadu_ps(lanes);
  switch (count) {
    case 1: _mm_store_ss(out, _mm512_castps512_ps128(v)); break;
    case 2: _mm_storel_epi64((__m128i *)(void *)out, _mm_castps_si128(_mm512_castps512_ps128(v))); break;
    case 4: _mm_storeu_ps(out, _mm512_castps512_ps128(v)); break;
    case 8: _mm256_storeu_ps(out, _mm512_castps512_ps256(v)); break;
    default: _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), v);
  }
}

static inline __m512d tf_partial64(const double *in, int64_t count) {
  switch (count) {
    case 1: return _mm512_zextpd128_pd512(_mm_load_sd(in));
    case 2: return _mm512_zextpd128_pd512(_mm_loadu_pd(in));
    case 4: return _mm512_zextpd256_pd512(_mm256_loadu_pd(in));
    default: return _mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), in);
  }
}

static inline void tf_load_lanes64(double *lanes, const double *in, int64_t count) {
  _mm512_storeu_pd(lanes, tf_partial64(in, count));
}

static inline void tf_store_lanes64(double *out, const double *lanes, int64_t count) {
  __m512d v = _mm512_loadu_pd(lanes);
  switch (count) {
    case 1: _mm_store_sd(out, _mm512_castpd512_pd128(v)); break;
    case 2: _mm_storeu_pd(out, _mm512_castpd512_pd128(v)); break;
    case 4: _mm256_storeu_pd(out, _mm512_castpd512_pd256(v)); break;
    default: _mm512_mask_storeu_pd(out, (__mmask8)((1u << count) - 1), v);
  }
}

#elif defined(__AVX2__)

static inline __m256i tf_mask32(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m256i tf_mask64(int64_t count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}

static inline __m256 tf_partial32(const float *in, int64_t count) {
  switch (count) {
    case 1: return _mm256_zextps128_ps256(_mm_load_ss(in));
    case 2: return _mm256_zextps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)in)));
    case 4: return _mm256_zextps128_ps256(_mm_loadu_ps(in));
    default: return _mm256_maskload_ps(in, tf_mask32(count));
  }
}

static inline void tf_load_lanes32(float *lanes, const float *in, int64_t count) {
  _mm256_storeu_ps(lanes, tf_partial32(in, count));
}

static inline void tf_store_lanes32(float *out, const float *lanes, int64_t count) {
  __m256 v = _mm256_loadu_ps(lanes);
  switch (count) {
    case 1: _mm_store_ss(out, _mm256_castps256_ps128(v)); break;
    case 2: _mm_storel_epi64((__m128i *)(void *)out, _mm_castps_si128(_mm256_castps256_ps128(v))); break;
    case 4: _mm_storeu_ps(out, _mm256_castps256_ps128(v)); break;
    default: _mm256_maskstore_ps(out, tf_mask32(count), v);
  }
}

static inline __m256d tf_partial64(const double *in, int64_t count) {
  switch (count) {
    case 1: return _mm256_zextpd128_pd256(_mm_load_sd(in));
    case 2: return _mm256_zextpd128_pd256(_mm_loadu_pd(in));
    default: return _mm256_maskload_pd(in, tf_mask64(count));
  }
}

static inline void tf_load_lanes64(double *lanes, const double *in, int64_t count) {
  _mm256_storeu_pd(lanes, tf_partial64(in, count));
}

static inline void tf_store_lanes64(double *out, const double *lanes, int64_t count) {
  __m256d v = _mm256_loadu_pd(lanes);
  switch (count) {
    case 1: _mm_store_sd(out, _mm256_castpd256_pd128(v)); break;
    case 2: _mm_storeu_pd(out, _mm256_castpd256_pd128(v)); break;
    default: _mm256_maskstore_pd(out, tf_mask64(count), v);
  }
}

#else

static inline void tf_load_lanes32(float *lanes, const float *in, int64_t count) {
  for (int64_t i = 0; i < TF_LANES32; i++) lanes[i] = i < count ? in[i] : 0.0f;
}

static inline void tf_store_lanes32(float *out, const float *lanes, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = lanes[i];
}

static inline void tf_load_lanes64(double *lanes, const double *in, int64_t count) {
  for (int64_t i = 0; i < TF_LANES64; i++) lanes[i] = i < count ? in[i] : 0.0;
}

static inline void tf_store_lanes64(double *out, const double *lanes, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = lanes[i];
}

#endif

#endif
