/* What stands on factors L U of square matrices, and on triangular matrices: solving, inverting, determinants. */
#include <math.h>

#include "linalg/matrices.h"
#include "linalg/triangular.h"

enum { CHUNK = 512 };

static void swap_rows(char *a, char *b, size_t bytes) {
  char kept[CHUNK];
  for (size_t i = 0; i < bytes; i += CHUNK) {
    const size_t n = bytes - i < CHUNK ? bytes - i : CHUNK;
    memcpy(kept, a + i, n);
    memcpy(a + i, b + i, n);
    memcpy(b + i, kept, n);
  }
}

/* Factors the matrix (its adjoint, if asked for) into column-major L and U with the rows that were exchanged; the
 * pivots come after. Returns the number of the first pivot that is zero, from one on. */
static int32_t factor(const matrix_job *job, const void *matrix, int64_t rows, int64_t adjoint, char *lu,
                      int32_t *pivots) {
  if (rows == 0) return 0;
  if (adjoint) {
    memcpy(lu, matrix, (size_t)(rows * rows) * job->routines->element);
    matrix_conjugate(job, rows * rows, lu);
  } else {
    matrix_transpose(job, rows, rows, matrix, lu);
  }
  return job->routines->getrf(LAPACK_COLUMN_MAJOR, (int32_t)rows, (int32_t)rows, lu, (int32_t)rows, pivots);
}

static int32_t *pivots_behind(const matrix_job *job, int64_t rows, char *lu) {
  return (int32_t *)(lu + (size_t)(rows * rows) * job->routines->element);
}

/* Solves for the row-major right-hand side `x` in place; column-major factors are read as their transposes. */
static void substitute(const matrix_job *job, int64_t rows, int64_t columns, const char *lu, const int32_t *pivots,
                       char *x) {
  const size_t bytes = (size_t)columns * job->routines->element;
  const int32_t n = (int32_t)rows, k = (int32_t)columns;
  if (n == 0 || k == 0) return;
  for (int32_t i = 0; i < n; i++)
    if (pivots[i] != i + 1) swap_rows(x + (size_t)i * bytes, x + (size_t)(pivots[i] - 1) * bytes, bytes);
  tf_trsm(job->type, BLAS_UPPER, BLAS_TRANSPOSE, BLAS_UNIT, n, k, lu, n, x, k);
  tf_trsm(job->type, BLAS_LOWER, BLAS_TRANSPOSE, BLAS_NON_UNIT, n, k, lu, n, x, k);
}

/* words: rows, columns of the right-hand sides, whether the adjoint is meant. Workspace: the matrix, rows pivots. */
static int32_t solve_matrix(const matrix_job *job, int64_t matrix, char *lu) {
  const int64_t rows = job->words[0], columns = job->words[1];
  int32_t *const pivots = pivots_behind(job, rows, lu);
  char *const x = matrix_at(job, job->outputs[0], matrix, rows * columns);
  const char *const b = matrix_at(job, job->inputs[1], matrix, rows * columns);
  const int32_t info =
      factor(job, matrix_at(job, job->inputs[0], matrix, rows * rows), rows, job->words[2], lu, pivots);
  if (info) return info;
  if (x != b) memcpy(x, b, (size_t)(rows * columns) * job->routines->element);
  substitute(job, rows, columns, lu, pivots, x);
  return 0;
}

/* words: rows, whether the adjoint is meant, whether the tensors are float16, which is computed in float32. Workspace:
 * the matrix, rows pivots; for float16 then input and output in float32. */
static int32_t invert_matrix(const matrix_job *job, int64_t matrix, char *lu) {
  const int64_t rows = job->words[0], elements = rows * rows;
  int32_t *const pivots = pivots_behind(job, rows, lu);
  char *a = matrix_at(job, job->inputs[0], matrix, elements), *x = matrix_at(job, job->outputs[0], matrix, elements);
  if (job->words[2]) {
    a = (char *)(pivots + rows);
    x = a + (size_t)elements * sizeof(float);
    tf_float32_from_float16_n((float *)a, (const tf_float16 *)job->inputs[0]->data + matrix * elements, elements);
  }
  const int32_t info = factor(job, a, rows, job->words[1], lu, pivots);
  if (info) return info;
  matrix_identity(job, rows, x);
  substitute(job, rows, rows, lu, pivots, x);
  tf_float16 *const half = job->outputs[0]->data;
  if (job->words[2]) tf_float16_from_float32_n(half + matrix * elements, (const float *)x, elements);
  return 0;
}

/* Element i of the diagonal of the factors as a pair of doubles. */
static matrix_pair diagonal(const matrix_job *job, const char *lu, int64_t rows, int64_t i) {
  const void *const at = lu + (size_t)(i * (rows + 1)) * job->routines->element;
  switch (job->type) {
    case LAPACK_FLOAT32: return (matrix_pair){*(const float *)at, 0};
    case LAPACK_FLOAT64: return (matrix_pair){*(const double *)at, 0};
    case LAPACK_COMPLEX64: return (matrix_pair){((const float *)at)[0], ((const float *)at)[1]};
    default: return *(const matrix_pair *)at;
  }
}

static void store(const matrix_job *job, const tf_tensor *output, int64_t i, matrix_pair value) {
  void *const at = matrix_at(job, output, i, 1);
  switch (job->type) {
    case LAPACK_FLOAT32: *(float *)at = (float)value.re; break;
    case LAPACK_FLOAT64: *(double *)at = value.re; break;
    case LAPACK_COMPLEX64: ((float *)at)[0] = (float)value.re, ((float *)at)[1] = (float)value.im; break;
    default: *(matrix_pair *)at = value;
  }
}

static matrix_pair product(matrix_pair a, matrix_pair b) {
  if (a.im == 0 && b.im == 0) return (matrix_pair){a.re * b.re, 0};
  return (matrix_pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* words: rows. Workspace: the matrix, rows pivots. The product is kept as a fraction and a power of two, so that it
 * overflows at the end only. */
static int32_t determinant_matrix(const matrix_job *job, int64_t matrix, char *lu) {
  const int64_t rows = job->words[0];
  int32_t *const pivots = pivots_behind(job, rows, lu);
  const int32_t info = factor(job, matrix_at(job, job->inputs[0], matrix, rows * rows), rows, 0, lu, pivots);
  if (info < 0) return info;
  matrix_pair fraction = {1, 0};
  int64_t power = 0;
  for (int64_t i = 0; i < rows; i++) {
    fraction = product(fraction, diagonal(job, lu, rows, i));
    if (pivots[i] != i + 1) fraction = (matrix_pair){-fraction.re, -fraction.im};
    int shift = 0;
    frexp(fabs(fraction.re) > fabs(fraction.im) ? fraction.re : fraction.im, &shift);
    fraction = (matrix_pair){ldexp(fraction.re, -shift), ldexp(fraction.im, -shift)};
    power += shift;
  }
  const int whole = power > 10000 ? 10000 : power < -10000 ? -10000 : (int)power;
  store(job, job->outputs[0], matrix, (matrix_pair){ldexp(fraction.re, whole), ldexp(fraction.im, whole)});
  return 0;
}

/* words: rows. Workspace: the matrix, rows pivots. Outputs: the sign, 0 for a singular matrix, and the logarithm. */
static int32_t log_determinant_matrix(const matrix_job *job, int64_t matrix, char *lu) {
  const int64_t rows = job->words[0];
  int32_t *const pivots = pivots_behind(job, rows, lu);
  const int32_t info = factor(job, matrix_at(job, job->inputs[0], matrix, rows * rows), rows, 0, lu, pivots);
  if (info < 0) return info;
  matrix_pair sign = {1, 0};
  double logarithm = 0;
  for (int64_t i = 0; i < rows; i++) {
    const matrix_pair value = diagonal(job, lu, rows, i);
    const double modulus = value.im == 0 ? fabs(value.re) : hypot(value.re, value.im);
    logarithm += log(modulus);
    if (modulus == 0) {
      sign = (matrix_pair){0, 0};
      break;
    }
    sign = product(sign, (matrix_pair){value.re / modulus, value.im / modulus});
    if (pivots[i] != i + 1) sign = (matrix_pair){-sign.re, -sign.im};
  }
  store(job, job->outputs[0], matrix, sign);
  store(job, job->outputs[1], matrix, (matrix_pair){logarithm, 0});
  return 0;
}

/* words: rows, columns of the right-hand sides, whether the lower triangle is meant, whether the adjoint; then the rank
 * of the batch, its sizes, and in how many matrices each input moves on along each of its dimensions. */
static int32_t triangular_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  (void)workspace;
  const int64_t rows = job->words[0], columns = job->words[1], rank = job->words[4];
  const int64_t *const sizes = job->words + 5, *const a_strides = sizes + rank, *const b_strides = a_strides + rank;
  int64_t a_number = 0, b_number = 0, rest = matrix;
  for (int64_t d = rank - 1; d >= 0; d--) {
    a_number += rest % sizes[d] * a_strides[d];
    b_number += rest % sizes[d] * b_strides[d];
    rest /= sizes[d];
  }
  if (rows == 0 || columns == 0) return 0;
  char *const x = matrix_at(job, job->outputs[0], matrix, rows * columns);
  const char *const b = matrix_at(job, job->inputs[1], b_number, rows * columns);
  if (x != b) memcpy(x, b, (size_t)(rows * columns) * job->routines->element);
  const char *const a = matrix_at(job, job->inputs[0], a_number, rows * rows);
  triangular_solve(job->type, rows, columns, job->words[2], job->words[3], a, x);
  return 0;
}

#define KERNEL(name, count, body)                                                                     \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    return matrices_run(context, inputs, outputs, count, parameters, body);                           \
  }
KERNEL(matrix_solve, 1, solve_matrix)
KERNEL(matrix_inverse, 1, invert_matrix)
KERNEL(matrix_determinant, 1, determinant_matrix)
KERNEL(log_matrix_determinant, 2, log_determinant_matrix)
KERNEL(matrix_triangular_solve, 1, triangular_matrix)

TF_TABLE(linalg_solve) = {
  TF_ENTRY(matrix_solve),           TF_ENTRY(matrix_inverse),          TF_ENTRY(matrix_determinant),
  TF_ENTRY(log_matrix_determinant), TF_ENTRY(matrix_triangular_solve), TF_END,
};
