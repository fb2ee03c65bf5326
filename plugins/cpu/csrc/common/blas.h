/* Dense matrix products of the vendored OpenBLAS: C = alpha op(A) op(B) + beta C, column counts being leading dimensions.
 *
 * Row-major. Each call runs on the calling thread alone; several threads may call at once, so a kernel splits its work
 * with parallel_for. The library never starts threads of its own. op is given by `transpose`: 0 none, 1 transposed,
 * 2 conjugate transposed. */
#ifndef TIMBERFRAME_CPU_BLAS_H
#define TIMBERFRAME_CPU_BLAS_H

#include <stdint.h>

enum { TF_NO_TRANSPOSE = 0, TF_TRANSPOSE = 1, TF_CONJUGATE_TRANSPOSE = 2 };

/* Loads the library from this path; returns NULL, or what went wrong. Python calls it once, before any kernel runs, with
 * the environment variables set that keep it on one thread. */
const char *tf_blas_load(const char *path);

/* m, n, k and leading dimensions must fit in 31 bits; returns 0, or -1 without doing anything if they do not. The complex
 * ones take alpha and beta as pairs (real, imaginary) and matrices of such pairs. */
int tf_sgemm(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
             const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
int tf_dgemm(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const double *a,
             int64_t lda, const double *b, int64_t ldb, double beta, double *c, int64_t ldc);
int tf_cgemm(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, const float *alpha, const float *a,
             int64_t lda, const float *b, int64_t ldb, const float *beta, float *c, int64_t ldc);
int tf_zgemm(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, const double *alpha, const double *a,
             int64_t lda, const double *b, int64_t ldb, const double *beta, double *c, int64_t ldc);

/* y = alpha op(A) x + beta y; A is m x n, increments are in elements. */
int tf_sgemv(int transpose, int64_t m, int64_t n, float alpha, const float *a, int64_t lda, const float *x, int64_t incx,
             float beta, float *y, int64_t incy);
int tf_dgemv(int transpose, int64_t m, int64_t n, double alpha, const double *a, int64_t lda, const double *x,
             int64_t incx, double beta, double *y, int64_t incy);

#endif
