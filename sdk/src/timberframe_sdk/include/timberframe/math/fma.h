/* a * b + c for the arithmetic inside kernels: fused where the instruction exists, two roundings elsewhere.
 *
 * What is computed with it must be accurate either way; code that needs the exact product asks TF_HAS_FMA. */
#ifndef TIMBERFRAME_MATH_FMA_H
#define TIMBERFRAME_MATH_FMA_H

#if defined(__FMA__) || defined(__aarch64__)
#define TF_HAS_FMA 1
#else
#define TF_HAS_FMA 0
#endif

static inline float tf_fma_f32(float a, float b, float c) {
#if TF_HAS_FMA
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

static inline double tf_fma_f64(double a, double b, double c) {
#if TF_HAS_FMA
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

#endif
