/* The conversions of math/half.h for many elements; source and destination do not overlap. */
#ifndef TIMBERFRAME_CPU_HALF_H
#define TIMBERFRAME_CPU_HALF_H

#include <timberframe/math/half.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline void tf_float32_from_bfloat16_n(float *restrict out, const tf_bfloat16 *restrict in, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = tf_float32_from_bfloat16(in[i]);
}

static inline void tf_bfloat16_from_float32_n(tf_bfloat16 *restrict out, const float *restrict in, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = tf_bfloat16_from_float32(in[i]);
}

static inline void tf_float32_from_float16_n(float *restrict out, const tf_float16 *restrict in, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i))));
  }
#endif
  for (; i < count; i++) out[i] = tf_float32_from_float16(in[i]);
}

static inline void tf_float16_from_float32_n(tf_float16 *restrict out, const float *restrict in, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)(out + i), h);
  }
#endif
  for (; i < count; i++) out[i] = tf_float16_from_float32(in[i]);
}

#endif
