/* OpenBLAS for blas.h: loaded by path, so that no other copy in the process is taken for it. */
#include "common/blas.h"

#include <stddef.h>

#include "common/lapack.h"
#include "common/platform.h"

enum { ROW_MAJOR = 101 };
static const int cblas_transpose[] = {111, 112, 113};

typedef int blasint;
typedef void sgemm(int, int, int, blasint, blasint, blasint, float, const float *, blasint, const float *, blasint, float,
                   float *, blasint);
typedef void dgemm(int, int, int, blasint, blasint, blasint, double, const double *, blasint, const double *, blasint,
                   double, double *, blasint);
typedef void xgemm(int, int, int, blasint, blasint, blasint, const void *, const void *, blasint, const void *, blasint,
                   const void *, void *, blasint);
typedef void sgemv(int, int, blasint, blasint, float, const float *, blasint, const float *, blasint, float, float *,
                   blasint);
typedef void dgemv(int, int, blasint, blasint, double, const double *, blasint, const double *, blasint, double, double *,
                   blasint);

static struct {
  sgemm *sgemm;
  dgemm *dgemm;
  xgemm *cgemm;
  xgemm *zgemm;
  sgemv *sgemv;
  dgemv *dgemv;
} blas;

const char *tf_blas_load(const char *path) {
  void *library = platform_open(path);
  if (!library) return platform_error();
  void (*set_num_threads)(int) = NULL;
  const struct {
    const char *name;
    void *target;
  } symbols[] = {
      {"scipy_openblas_set_num_threads", &set_num_threads}, {"scipy_cblas_sgemm", &blas.sgemm},
      {"scipy_cblas_dgemm", &blas.dgemm},                   {"scipy_cblas_cgemm", &blas.cgemm},
      {"scipy_cblas_zgemm", &blas.zgemm},                   {"scipy_cblas_sgemv", &blas.sgemv},
      {"scipy_cblas_dgemv", &blas.dgemv},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    /* POSIX and Windows say that a function's address fits in an object pointer. */
    void **target = symbols[i].target;
    *target = platform_find(library, symbols[i].name);
    if (!*target) return platform_error();
  }
  set_num_threads(1);
  return tf_lapack_load(library);
}

static int fits(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) {
  return (a | b | c | d | e | f) >= 0 && a <= INT32_MAX && b <= INT32_MAX && c <= INT32_MAX && d <= INT32_MAX &&
         e <= INT32_MAX && f <= INT32_MAX;
}

#define GEMM(name, type, scalar)                                                                                       \
  int tf_##name(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, scalar alpha, const type *a,        \
                int64_t lda, const type *b, int64_t ldb, scalar beta, type *c, int64_t ldc) {                          \
    if (!fits(m, n, k, lda, ldb, ldc)) return -1;                                                                      \
    blas.name(ROW_MAJOR, cblas_transpose[transpose_a], cblas_transpose[transpose_b], (blasint)m, (blasint)n,           \
              (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);                             \
    return 0;                                                                                                          \
  }
GEMM(sgemm, float, float)
GEMM(dgemm, double, double)
GEMM(cgemm, float, const float *)
GEMM(zgemm, double, const double *)

#define GEMV(name, type)                                                                                               \
  int tf_##name(int transpose, int64_t m, int64_t n, type alpha, const type *a, int64_t lda, const type *x,            \
                int64_t incx, type beta, type *y, int64_t incy) {                                                      \
    if (!fits(m, n, lda, incx, incy, 0)) return -1;                                                                    \
    blas.name(ROW_MAJOR, cblas_transpose[transpose], (blasint)m, (blasint)n, alpha, a, (blasint)lda, x, (blasint)incx, \
              beta, y, (blasint)incy);                                                                                 \
    return 0;                                                                                                          \
  }
GEMV(sgemv, float)
GEMV(dgemv, double)
