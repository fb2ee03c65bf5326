/* The routines of lapack.h, found by name in the library that blas.c has opened. */
#include "common/lapack.h"

#include "common/platform.h"

typedef void strsm(int, int, int, int, int, int32_t, int32_t, float, const float *, int32_t, float *, int32_t);
typedef void dtrsm(int, int, int, int, int, int32_t, int32_t, double, const double *, int32_t, double *, int32_t);
typedef void xtrsm(int, int, int, int, int, int32_t, int32_t, const void *, const void *, int32_t, void *, int32_t);

static struct {
  strsm *float32;
  dtrsm *float64;
  xtrsm *complex64, *complex128;
} trsm;

typedef int32_t sgelsy(int, int32_t, int32_t, int32_t, void *, int32_t, void *, int32_t, int32_t *, float, int32_t *,
                       void *, int32_t);
typedef int32_t dgelsy(int, int32_t, int32_t, int32_t, void *, int32_t, void *, int32_t, int32_t *, double, int32_t *,
                       void *, int32_t);
typedef int32_t cgelsy(int, int32_t, int32_t, int32_t, void *, int32_t, void *, int32_t, int32_t *, float, int32_t *,
                       void *, int32_t, void *);
typedef int32_t zgelsy(int, int32_t, int32_t, int32_t, void *, int32_t, void *, int32_t, int32_t *, double, int32_t *,
                       void *, int32_t, void *);

static struct {
  sgelsy *float32;
  dgelsy *float64;
  cgelsy *complex64;
  zgelsy *complex128;
} gelsy;

lapack_routines tf_lapack[LAPACK_TYPES] = {
    {.element = 4, .real = 4},
    {.element = 8, .real = 8},
    {.element = 8, .real = 4},
    {.element = 16, .real = 8},
};

#define ROUTINE(type, letter, member, name) \
  { "scipy_LAPACKE_" #letter #name "_work", &tf_lapack[type].member }
#define COMMON(type, letter) \
  ROUTINE(type, letter, gelqf, gelqf), ROUTINE(type, letter, potrf, potrf), ROUTINE(type, letter, getrf, getrf)
#define REAL(type, letter)                                                                        \
  COMMON(type, letter), ROUTINE(type, letter, orglq, orglq), ROUTINE(type, letter, syevd, syevd), \
      ROUTINE(type, letter, sytrd, sytrd), ROUTINE(type, letter, orgtr, orgtr), ROUTINE(type, letter, gesdd, gesdd)
#define COMPLEX(type, letter)                                                                     \
  COMMON(type, letter), ROUTINE(type, letter, orglq, unglq), ROUTINE(type, letter, heevd, heevd), \
      ROUTINE(type, letter, sytrd, hetrd), ROUTINE(type, letter, orgtr, ungtr),                   \
      ROUTINE(type, letter, complex_gesdd, gesdd)

const char *tf_lapack_load(void *library) {
  const struct {
    const char *name;
    void *target;
  } symbols[] = {
      REAL(LAPACK_FLOAT32, s),
      REAL(LAPACK_FLOAT64, d),
      COMPLEX(LAPACK_COMPLEX64, c),
      COMPLEX(LAPACK_COMPLEX128, z),
      {"scipy_cblas_strsm", &trsm.float32},
      {"scipy_cblas_dtrsm", &trsm.float64},
      {"scipy_cblas_ctrsm", &trsm.complex64},
      {"scipy_cblas_ztrsm", &trsm.complex128},
      {"scipy_LAPACKE_sgelsy_work", &gelsy.float32},
      {"scipy_LAPACKE_dgelsy_work", &gelsy.float64},
      {"scipy_LAPACKE_cgelsy_work", &gelsy.complex64},
      {"scipy_LAPACKE_zgelsy_work", &gelsy.complex128},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    /* POSIX and Windows say that a function's address fits in an object pointer. */
    void **target = symbols[i].target;
    *target = platform_find(library, symbols[i].name);
    if (!*target) return platform_error();
  }
  return NULL;
}

void tf_trsm(int type, int uplo, int transpose, int diagonal, int32_t m, int32_t n, const void *a, int32_t lda, void *b,
             int32_t ldb) {
  static const double one[2] = {1, 0};
  static const float one_single[2] = {1, 0};
  switch (type) {
    case LAPACK_FLOAT32:
      trsm.float32(BLAS_ROW_MAJOR, BLAS_LEFT, uplo, transpose, diagonal, m, n, 1, a, lda, b, ldb);
      break;
    case LAPACK_FLOAT64:
      trsm.float64(BLAS_ROW_MAJOR, BLAS_LEFT, uplo, transpose, diagonal, m, n, 1, a, lda, b, ldb);
      break;
    case LAPACK_COMPLEX64:
      trsm.complex64(BLAS_ROW_MAJOR, BLAS_LEFT, uplo, transpose, diagonal, m, n, one_single, a, lda, b, ldb);
      break;
    default: trsm.complex128(BLAS_ROW_MAJOR, BLAS_LEFT, uplo, transpose, diagonal, m, n, one, a, lda, b, ldb);
  }
}

int32_t tf_gelsy(int type, int32_t m, int32_t n, int32_t columns, void *a, void *b, int32_t ldb, int32_t *pivots,
                 double tolerance, void *work, int32_t lwork, void *rwork) {
  enum { LAYOUT = LAPACK_COLUMN_MAJOR };
  const float single = (float)tolerance;
  int32_t rank;
  switch (type) {
    case LAPACK_FLOAT32: return gelsy.float32(LAYOUT, m, n, columns, a, m, b, ldb, pivots, single, &rank, work, lwork);
    case LAPACK_FLOAT64:
      return gelsy.float64(LAYOUT, m, n, columns, a, m, b, ldb, pivots, tolerance, &rank, work, lwork);
    case LAPACK_COMPLEX64:
      return gelsy.complex64(LAYOUT, m, n, columns, a, m, b, ldb, pivots, single, &rank, work, lwork, rwork);
    default: return gelsy.complex128(LAYOUT, m, n, columns, a, m, b, ldb, pivots, tolerance, &rank, work, lwork, rwork);
  }
}
