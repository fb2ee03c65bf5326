/* The rarer reductions, compiled for one instruction set: complex numbers, integer products, norms and means, sums of
 * narrow integers, Max and Min of less common integers. Integers wrap; means of integers are exact (64-bit sums) and
 * round towards zero, as TensorFlow's are. */
#include <math.h>

#include "reduce/reducer.h"

#define AS_INT64(x) ((int64_t)(x))
#define AS_UINT64(x) ((uint64_t)(x))
/* The quotient of an empty set is 0: TensorFlow's NaN, converted. */
#define OVER_SIGNED(a, n) ((n) ? (int64_t)(a) / (n) : 0)
#define OVER_UNSIGNED(a, n) ((n) ? (a) / (uint64_t)(n) : 0)

#define WRAPPING(name, type, wide)                                           \
  static inline type square_##name(type x) {                                 \
    return (type)((wide)x * (wide)x);                                        \
  }                                                                          \
  static inline type add_##name(type a, type b) {                            \
    return (type)((wide)a + (wide)b);                                        \
  }                                                                          \
  static inline type multiply_##name(type a, type b) {                       \
    return (type)((wide)a * (wide)b);                                        \
  }                                                                          \
  REDUCER(prod_##name, type, type, type, 1, AS_IT_IS, multiply_##name, ONLY) \
  SCALAR_ROWS(squares_##name, type, type, square_##name, add_##name)         \
  REDUCER_STEPS(squares_##name, type, type, 0, square_##name, add_##name, narrow)
WRAPPING(int8, uint8_t, unsigned)
WRAPPING(int16, uint16_t, unsigned)
WRAPPING(int32, uint32_t, uint32_t)
WRAPPING(int64, uint64_t, uint64_t)
REDUCER(sum_int8, uint8_t, uint8_t, uint8_t, 0, AS_IT_IS, add_int8, ONLY)
REDUCER(sum_int16, uint16_t, uint16_t, uint16_t, 0, AS_IT_IS, add_int16, ONLY)

/* A sum of squares that wrapped below zero has no root: the result is 0. */
#define ROOT(a, n) ((a) > 0 ? sqrt((double)(a)) : 0.0)
#define NORM(signed_name, signed_type, unsigned_name, unsigned_type)                                                 \
  REDUCER_KERNEL(euclidean_norm_##signed_name, squares_##signed_name, unsigned_type, signed_type, signed_type,       \
                 (signed_type)ROOT)                                                                                  \
  REDUCER_KERNEL(euclidean_norm_##unsigned_name, squares_##signed_name, unsigned_type, unsigned_type, unsigned_type, \
                 (unsigned_type)ROOT)
NORM(int8, int8_t, uint8, uint8_t)
NORM(int16, int16_t, uint16, uint16_t)
NORM(int32, int32_t, uint32, uint32_t)
NORM(int64, int64_t, uint64, uint64_t)

INTEGER_EXTREMES(int8, int8_t, INT8_MIN, INT8_MAX)
INTEGER_EXTREMES(int16, int16_t, INT16_MIN, INT16_MAX)
INTEGER_EXTREMES(uint16, uint16_t, 0, UINT16_MAX)
INTEGER_EXTREMES(uint32, uint32_t, 0, UINT32_MAX)
INTEGER_EXTREMES(uint64, uint64_t, 0, UINT64_MAX)

#define MEANS(name, type, wide, load, over) REDUCER(mean_##name, type, wide, type, 0, load, ADD, (type)over)
MEANS(int8, int8_t, uint64_t, AS_INT64, OVER_SIGNED)
MEANS(int16, int16_t, uint64_t, AS_INT64, OVER_SIGNED)
MEANS(int32, int32_t, uint64_t, AS_INT64, OVER_SIGNED)
MEANS(int64, int64_t, uint64_t, AS_INT64, OVER_SIGNED)
MEANS(uint8, uint8_t, uint64_t, AS_UINT64, OVER_UNSIGNED)
MEANS(uint16, uint16_t, uint64_t, AS_UINT64, OVER_UNSIGNED)
MEANS(uint32, uint32_t, uint64_t, AS_UINT64, OVER_UNSIGNED)
MEANS(uint64, uint64_t, uint64_t, AS_UINT64, OVER_UNSIGNED)

#define COMPLEX(name, type, real, root)                                                   \
  static inline type over_##name(type a, int64_t n) {                                     \
    return n ? (type){a.re / (real)n, a.im / (real)n} : (type){0, 0};                     \
  }                                                                                       \
  static inline type root_##name(real a) {                                                \
    return (type){root(a), 0};                                                            \
  }                                                                                       \
  REDUCER(sum_##name, type, type, type, ((type){0, 0}), AS_IT_IS, type##_add, ONLY)       \
  REDUCER_KERNEL(mean_##name, sum_##name, type, type, type, over_##name)                  \
  REDUCER(prod_##name, type, type, type, ((type){1, 0}), AS_IT_IS, type##_multiply, ONLY) \
  REDUCER(euclidean_norm_##name, type, real, type, 0, type##_square, ADD, COMPLEX_ROOT_##name)
#define COMPLEX_ROOT_complex64(a, n) root_complex64(a)
#define COMPLEX_ROOT_complex128(a, n) root_complex128(a)
COMPLEX(complex64, tf_complex64, float, sqrtf)
COMPLEX(complex128, tf_complex128, double, sqrt)

#define EXTREMES(name) TF_ENTRY(max_##name), TF_ENTRY(min_##name)
#define PAIR(op, name) TF_ENTRY(op##_int##name), TF_ENTRY(op##_uint##name)
#define COMPLEX_ENTRIES(name) \
  TF_ENTRY(sum_##name), TF_ENTRY(mean_##name), TF_ENTRY(prod_##name), TF_ENTRY(euclidean_norm_##name)
TF_TABLE(reduce_plain) = {
  TF_ENTRY(sum_int8), TF_ENTRY(sum_int16), TF_ENTRY(prod_int8), TF_ENTRY(prod_int16), TF_ENTRY(prod_int32),
  TF_ENTRY(prod_int64), PAIR(mean, 8), PAIR(mean, 16), PAIR(mean, 32), PAIR(mean, 64), PAIR(euclidean_norm, 8),
  PAIR(euclidean_norm, 16), PAIR(euclidean_norm, 32), PAIR(euclidean_norm, 64), COMPLEX_ENTRIES(complex64),
  COMPLEX_ENTRIES(complex128), EXTREMES(int8), EXTREMES(int16), EXTREMES(uint16), EXTREMES(uint32), EXTREMES(uint64),
  TF_END,
};
