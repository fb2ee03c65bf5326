/* LAPACK of the vendored OpenBLAS, one table of routines for each of its four types.
 *
 * All matrices are column-major, seen from LAPACK: a row-major matrix is its transpose. Routines come through LAPACKE's
 * "_work" functions, which allocate nothing and have a plain C interface; they return 0, a positive number where the
 * matrix is at fault (see each kernel), a negative one where an argument is. Sizes must fit in 31 bits. */
#ifndef TIMBERFRAME_CPU_LAPACK_H
#define TIMBERFRAME_CPU_LAPACK_H

#include <stddef.h>
#include <stdint.h>

enum { LAPACK_COLUMN_MAJOR = 102, BLAS_ROW_MAJOR = 101 };
enum { BLAS_NO_TRANSPOSE = 111, BLAS_TRANSPOSE = 112, BLAS_ADJOINT = 113, BLAS_UPPER = 121, BLAS_LOWER = 122 };
enum { BLAS_NON_UNIT = 131, BLAS_UNIT = 132, BLAS_LEFT = 141 };

/* Elements are float, double, or pairs of them (real, imaginary), according to the table's number. */
typedef struct lapack_routines {
  size_t element, real; /* bytes of an element, and of its real part */
  int32_t (*gelqf)(int layout, int32_t m, int32_t n, void *a, int32_t lda, void *tau, void *work, int32_t lwork);
  int32_t (*orglq)(int layout, int32_t m, int32_t n, int32_t k, void *a, int32_t lda, const void *tau, void *work,
                   int32_t lwork);
  int32_t (*potrf)(int layout, char uplo, int32_t n, void *a, int32_t lda);
  int32_t (*getrf)(int layout, int32_t m, int32_t n, void *a, int32_t lda, int32_t *pivots);
  int32_t (*sytrd)(int layout, char uplo, int32_t n, void *a, int32_t lda, void *d, void *e, void *tau, void *work,
                   int32_t lwork);
  int32_t (*orgtr)(int layout, char uplo, int32_t n, void *a, int32_t lda, const void *tau, void *work, int32_t lwork);
  /* Eigenvalues and eigenvectors of a self-adjoint matrix, in the first form for real types, the second for complex. */
  int32_t (*syevd)(int layout, char job, char uplo, int32_t n, void *a, int32_t lda, void *w, void *work, int32_t lwork,
                   int32_t *iwork, int32_t liwork);
  int32_t (*heevd)(int layout, char job, char uplo, int32_t n, void *a, int32_t lda, void *w, void *work, int32_t lwork,
                   void *rwork, int32_t lrwork, int32_t *iwork, int32_t liwork);
  /* The same for singular values and vectors. */
  int32_t (*gesdd)(int layout, char job, int32_t m, int32_t n, void *a, int32_t lda, void *s, void *u, int32_t ldu,
                   void *vt, int32_t ldvt, void *work, int32_t lwork, int32_t *iwork);
  int32_t (*complex_gesdd)(int layout, char job, int32_t m, int32_t n, void *a, int32_t lda, void *s, void *u,
                           int32_t ldu, void *vt, int32_t ldvt, void *work, int32_t lwork, void *rwork, int32_t *iwork);
} lapack_routines;

enum { LAPACK_FLOAT32, LAPACK_FLOAT64, LAPACK_COMPLEX64, LAPACK_COMPLEX128, LAPACK_TYPES };

/* Filled by tf_lapack_load, which tf_blas_load calls with what dlopen gave; it returns NULL, or what went wrong. */
extern lapack_routines tf_lapack[LAPACK_TYPES];
const char *tf_lapack_load(void *library);

/* op(A) X = B in place of B (m x n), row-major, A being triangular; `type` is a number of tf_lapack. */
void tf_trsm(int type, int uplo, int transpose, int diagonal, int32_t m, int32_t n, const void *a, int32_t lda, void *b,
             int32_t ldb);

/* The solutions X of least norm that make |A X - B| least, in place of B, whose leading dimension is that of the larger
 * side; column-major. Singular values below `tolerance` times the largest count as zero. rwork: 2 n real numbers. */
int32_t tf_gelsy(int type, int32_t m, int32_t n, int32_t columns, void *a, void *b, int32_t ldb, int32_t *pivots,
                 double tolerance, void *work, int32_t lwork, void *rwork);

#endif
