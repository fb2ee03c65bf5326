/* Triangular factors and systems of one matrix, and products, for each type of tf_lapack. */
#ifndef TIMBERFRAME_CPU_TRIANGULAR_H
#define TIMBERFRAME_CPU_TRIANGULAR_H

#include <math.h>
#include <string.h>

#include "common/blas.h"
#include "common/lapack.h"
#include "reduce/elements.h"

enum { SMALL_ROWS = 16 };

/* Small factors without the cost of a call of LAPACK, row by row from the left; like LAPACK's they stop at a pivot that
 * is not positive, while NaN goes on into the result. */
#define SMALL_FACTOR(name, real, root, parts)                                    \
  static inline int32_t factor_##name(int64_t n, real *l) {                      \
    for (int64_t k = 0; k < n; k++) {                                            \
      real *const row = l + k * n * parts;                                       \
      real sum = 0;                                                              \
      for (int64_t j = 0; j < k * parts; j++) sum += row[j] * row[j];            \
      const real pivot = row[k * parts] - sum;                                   \
      if (pivot <= 0) return (int32_t)k + 1;                                     \
      const real x = root(pivot);                                                \
      row[k * parts] = x;                                                        \
      if (parts == 2) row[k * parts + 1] = 0;                                    \
      for (int64_t i = k + 1; i < n; i++) {                                      \
        real *const below = l + i * n * parts;                                   \
        real re = 0, im = 0;                                                     \
        for (int64_t j = 0; j < k; j++) {                                        \
          if (parts == 1) {                                                      \
            re += below[j] * row[j];                                             \
          } else {                                                               \
            re += below[2 * j] * row[2 * j] + below[2 * j + 1] * row[2 * j + 1]; \
            im += below[2 * j + 1] * row[2 * j] - below[2 * j] * row[2 * j + 1]; \
          }                                                                      \
        }                                                                        \
        below[k * parts] = (below[k * parts] - re) / x;                          \
        if (parts == 2) below[k * parts + 1] = (below[k * parts + 1] - im) / x;  \
      }                                                                          \
    }                                                                            \
    return 0;                                                                    \
  }
SMALL_FACTOR(float32, float, sqrtf, 1)
SMALL_FACTOR(float64, double, sqrt, 1)
SMALL_FACTOR(complex64, float, sqrtf, 2)
SMALL_FACTOR(complex128, double, sqrt, 2)

/* The lower factor of Cholesky in place of a row-major matrix, whose upper triangle is zero; returns the number of the
 * first row where there is none, from one on. */
static inline int32_t triangular_factor(int type, int64_t n, void *l) {
  if (n > SMALL_ROWS) return tf_lapack[type].potrf(LAPACK_COLUMN_MAJOR, 'U', (int32_t)n, l, (int32_t)n);
  switch (type) {
    case LAPACK_FLOAT32: return factor_float32(n, l);
    case LAPACK_FLOAT64: return factor_float64(n, l);
    case LAPACK_COMPLEX64: return factor_complex64(n, l);
    default: return factor_complex128(n, l);
  }
}

/* Small triangular systems without the cost of a call of the BLAS. From each row the rows that are solved already are
 * taken one by one, and the reciprocal of the diagonal is multiplied with: the order of TensorFlow's kernel, so that
 * results agree for ill-conditioned matrices too. */
#define SMALL_SOLVE(name, type, less, multiply, conjugate, reciprocal)                                       \
  static inline void solve_##name(int64_t n, int64_t columns, int64_t lower, int64_t adjoint, const type *a, \
                                  type *x) {                                                                 \
    const int forward = lower != adjoint;                                                                    \
    for (int64_t step = 0; step < n; step++) {                                                               \
      const int64_t i = forward ? step : n - 1 - step;                                                       \
      const int64_t first = forward ? 0 : i + 1, last = forward ? i : n;                                     \
      type *const row = x + i * columns;                                                                     \
      for (int64_t k = first; k < last; k++) {                                                               \
        const type factor = adjoint ? conjugate(a[k * n + i]) : a[i * n + k];                                \
        for (int64_t c = 0; c < columns; c++) row[c] = less(row[c], multiply(factor, x[k * columns + c]));   \
      }                                                                                                      \
      const type pivot = reciprocal(a[i * n + i]), inverse = adjoint ? conjugate(pivot) : pivot;             \
      for (int64_t c = 0; c < columns; c++) row[c] = multiply(row[c], inverse);                              \
    }                                                                                                        \
  }
#define LESS(a, b) ((a) - (b))
#define RECIPROCAL(a) (1 / (a))
#define COMPLEX_SMALL(type, real)                                                                 \
  static inline type type##_less(type a, type b) {                                                \
    return (type){a.re - b.re, a.im - b.im};                                                      \
  }                                                                                               \
  static inline type type##_conjugate(type a) {                                                   \
    return (type){a.re, -a.im};                                                                   \
  }                                                                                               \
  static inline type type##_reciprocal(type a) { /* Smith's way, which does not overflow early */ \
    if (a.im == 0) return (type){1 / a.re, 0};                                                    \
    const int flip = !(a.re > a.im ? a.re > -a.im : a.im < -a.re);                                \
    const real p = flip ? a.im : a.re, q = flip ? a.re : a.im, ratio = q / p, d = p + q * ratio;  \
    return flip ? (type){ratio / d, -1 / d} : (type){1 / d, -ratio / d};                          \
  }
COMPLEX_SMALL(tf_complex64, float)
COMPLEX_SMALL(tf_complex128, double)
SMALL_SOLVE(float32, float, LESS, MULTIPLY, AS_IT_IS, RECIPROCAL)
SMALL_SOLVE(float64, double, LESS, MULTIPLY, AS_IT_IS, RECIPROCAL)
SMALL_SOLVE(complex64, tf_complex64, tf_complex64_less, tf_complex64_multiply, tf_complex64_conjugate,
            tf_complex64_reciprocal)
SMALL_SOLVE(complex128, tf_complex128, tf_complex128_less, tf_complex128_multiply, tf_complex128_conjugate,
            tf_complex128_reciprocal)

/* Solves for the row-major right-hand sides `x` in place; a is row-major, and its lower or upper triangle is read. */
static inline void triangular_solve(int type, int64_t n, int64_t columns, int64_t lower, int64_t adjoint, const void *a,
                                    void *x) {
  if (n > SMALL_ROWS) {
    tf_trsm(type, lower ? BLAS_LOWER : BLAS_UPPER, adjoint ? BLAS_ADJOINT : BLAS_NO_TRANSPOSE, BLAS_NON_UNIT,
            (int32_t)n, (int32_t)columns, a, (int32_t)n, x, (int32_t)columns);
    return;
  }
  switch (type) {
    case LAPACK_FLOAT32: solve_float32(n, columns, lower, adjoint, a, x); break;
    case LAPACK_FLOAT64: solve_float64(n, columns, lower, adjoint, a, x); break;
    case LAPACK_COMPLEX64: solve_complex64(n, columns, lower, adjoint, a, x); break;
    default: solve_complex128(n, columns, lower, adjoint, a, x);
  }
}

/* c = op(a) op(b), row-major; sizes fit in 31 bits. */
static inline void matrix_multiply(int type, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const void *a,
                                   int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  static const float single[2] = {1, 0}, no_single[2] = {0, 0};
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  switch (type) {
    case LAPACK_FLOAT32: tf_sgemm(op_a, op_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc); break;
    case LAPACK_FLOAT64: tf_dgemm(op_a, op_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc); break;
    case LAPACK_COMPLEX64: tf_cgemm(op_a, op_b, m, n, k, single, a, lda, b, ldb, no_single, c, ldc); break;
    default: tf_zgemm(op_a, op_b, m, n, k, one, a, lda, b, ldb, zero, c, ldc);
  }
}

#endif
