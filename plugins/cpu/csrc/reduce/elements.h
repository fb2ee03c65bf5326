/* Arithmetic of single elements in the form that REDUCER and the scans take. */
#ifndef TIMBERFRAME_CPU_ELEMENTS_H
#define TIMBERFRAME_CPU_ELEMENTS_H

#include <stdint.h>

#include "common/half.h"

typedef struct tf_complex64 {
  float re, im;
} tf_complex64;

typedef struct tf_complex128 {
  double re, im;
} tf_complex128;

#define AS_IT_IS(x) (x)
#define FROM_FLOAT16(x) tf_float32_from_float16(x)
#define FROM_BFLOAT16(x) tf_float32_from_bfloat16(x)

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))

#define MAXIMUM(a, b) ((b) > (a) ? (b) : (a))
#define MINIMUM(a, b) ((b) < (a) ? (b) : (a))

/* NaN wins over everything. The conditions are joined without branches so that loops vectorise. */
static inline float max_nan_float32(float a, float b) {
  return ((b > a) | (b != b)) ? b : a;
}
static inline float min_nan_float32(float a, float b) {
  return ((b < a) | (b != b)) ? b : a;
}
static inline double max_nan_float64(double a, double b) {
  return ((b > a) | (b != b)) ? b : a;
}
static inline double min_nan_float64(double a, double b) {
  return ((b < a) | (b != b)) ? b : a;
}

#define COMPLEX_ARITHMETIC(type, real)                                   \
  static inline type type##_add(type a, type b) {                        \
    return (type){a.re + b.re, a.im + b.im};                             \
  }                                                                      \
  static inline type type##_multiply(type a, type b) {                   \
    return (type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; \
  }                                                                      \
  static inline real type##_square(type a) {                             \
    return a.re * a.re + a.im * a.im;                                    \
  }
COMPLEX_ARITHMETIC(tf_complex64, float)
COMPLEX_ARITHMETIC(tf_complex128, double)

#endif
