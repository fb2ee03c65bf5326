/* The routines behind lapack.h, found by name in the library that blas.c has opened. */
#include "common/lapack.h"

#include <dlfcn.h>


typedef void strsm(int, int, int, int, int, int32_t, int32_t, float, const float *, int32_t, float *, int32_t);
typedef void dtrsm(int, int, int, int, int, int32_t, int32_t, double, const double *, int32_t, double *, int32_t);
typedef void xtrsm(int, int, int, int, int, int32_t, int32_t, const void *, const void *, int32_t, void *, int32_t);

static struct {
  strsm *float32;
  dtrsm *float64;
  xtrsm *complex64, *complex128;
} trsm;

lapack_routines tf_lapack[LAPACK_TYPES] = {
  {.element = 4, .real = 4}, {.element = 8, .real = 8}, {.element = 8, .real = 4}, {.element = 16, .real = 8},
};

#define ROUTINE(type, letter, member, name) {"scipy_LAPACKE_" #letter #name "_work", &tf_lapack[type].member}
#define COMMON(type, letter)                                                           \
  ROUTINE(type, letter, gelqf, gelqf), ROUTINE(type, letter, potrf, potrf), ROUTINE(type, letter, getrf, getrf)
#define REAL(type, letter)                                                              \
  COMMON(type, letter), ROUTINE(type, letter, orglq, orglq), ROUTINE(type, letter, syevd, syevd), \
      ROUTINE(type, letter, sytrd, sytrd), ROUTINE(type, letter, orgtr, orgtr), \
      ROUTINE(type, letter, gesdd, gesdd)
#define COMPLEX(type, letter)                                                           \
  COMMON(type, letter), ROUTINE(type, letter, orglq, unglq), ROUTINE(type, letter, heevd, heevd), \
      ROUTINE(type, letter, sytrd, hetrd), ROUTINE(type, letter, orgtr, ungtr), \
      ROUTINE(type, letter, complex_gesdd, gesdd)

const char *tf_lapack_load(void *library) {
  const struct {
    const char *name;
    void *target;
  } symbols[] = {
      REAL(LAPACK_FLOAT32, s), REAL(LAPACK_FLOAT64, d), COMPLEX(LAPACK_COMPLEX64, c), COMPLEX(LAPACK_COMPLEX128, z),
      {"scipy_cblas_strsm", &trsm.float32}, {"scipy_cblas_dtrsm", &trsm.float64},
      {"scipy_cblas_ctrsm", &trsm.complex64}, {"scipy_cblas_ztrsm", &trsm.complex128},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    /* POSIX says that a function's address fits in the object pointer which dlsym returns. */
    void **target = symbols[i].target;
    *target = dlsym(library, symbols[i].name);
    if (!*target) return dlerror();
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
    default:
      trsm.complex128(BLAS_ROW_MAJOR, BLAS_LEFT, uplo, transpose, diagonal, m, n, one, a, lda, b, ldb);
  }
}
