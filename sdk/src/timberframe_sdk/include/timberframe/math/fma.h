/* a * b + c for the arithmetic inside kernels: fused where the instruction exists, two roundings elsewhere.
 *
 * What is computed with it must be accurate either way; code that needs the exact product asks TF_HAS_FMA. */
#ifndef TIMBERFRAME_MATH_FMA_H
#define TIMBERFRAME_MATH_FMA_H

#include <timberframe/math/language.h>

static inline float tf_fma_f32(float a, float b, float c) {
#if TF_HAS_FMA
  return tf_fused_f32(a, b, c);
#else
  return a * b + c;
#endif
}

#ifndef TF_NO_FLOAT64
static inline double tf_fma_f64(double a, double b, double c) {
#if TF_HAS_FMA
  return tf_fused_f64(a, b, c);
#else
  return a * b + c;
#endif
}
#endif

#endif
