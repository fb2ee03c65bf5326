/* Qr and Cholesky.
 *
 * LAPACK sees row-major matrices transposed. So A = Q R is had as the transposed A's factors L Q', and the lower factor of
 * Cholesky as the upper one, both without moving anything. */
#include <math.h>

#include "common/half.h"
#include "linalg/matrices.h"

/* A matrix to be factored, in column-major sight, and what LAPACK needs for it. */
typedef struct qr_parts {
  int64_t rows, columns, width; /* width: columns of q */
  char *a, *q, *r, *tau, *work;
  int32_t lwork;
} qr_parts;

static int32_t qr_factors(const lapack_routines *lapack, const qr_parts *p) {
  const size_t size = lapack->element;
  const int64_t rank = p->rows < p->columns ? p->rows : p->columns, r_rows = p->width == rank ? rank : p->rows;
  const size_t a_row = (size_t)p->columns * size;
  int32_t info = 0;
  if (rank > 0) {
    info = lapack->gelqf(LAPACK_COLUMN_MAJOR, (int32_t)p->columns, (int32_t)p->rows, p->a, (int32_t)p->columns, p->tau,
                         p->work, p->lwork);
  }
  if (info) return info;
  for (int64_t i = 0; i < r_rows; i++) {
    const size_t row = (size_t)i * a_row, zeros = (size_t)(i < p->columns ? i : p->columns) * size;
    memset(p->r + row, 0, zeros);
    memcpy(p->r + row + zeros, p->a + row + zeros, a_row - zeros);
  }
  if (p->rows == 0 || p->width == 0) return 0;
  for (int64_t i = 0; i < p->rows; i++)
    memcpy(p->q + (size_t)(i * p->width) * size, p->a + (size_t)i * a_row, (size_t)rank * size);
  return lapack->orglq(LAPACK_COLUMN_MAJOR, (int32_t)p->width, (int32_t)p->rows, (int32_t)rank, p->q, (int32_t)p->width,
                       p->tau, p->work, p->lwork);
}

/* words: rows, columns, columns of q, length of LAPACK's work; whether the tensors are float16, which is computed in
 * float32. Workspace: the matrix, tau of min(rows, columns), work; for float16 then q and r. */
static int32_t qr_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  const size_t size = job->routines->element;
  const int64_t rows = job->words[0], columns = job->words[1], width = job->words[2];
  const int64_t rank = rows < columns ? rows : columns, r_rows = width == rank ? rank : rows;
  qr_parts p = {rows, columns, width, workspace, NULL, NULL, NULL, NULL, (int32_t)job->words[3]};
  p.tau = p.a + (size_t)(rows * columns) * size;
  p.work = p.tau + (size_t)rank * size;
  if (!job->words[4]) {
    p.q = matrix_at(job, job->outputs[0], matrix, rows * width);
    p.r = matrix_at(job, job->outputs[1], matrix, r_rows * columns);
    memcpy(p.a, matrix_at(job, job->inputs[0], matrix, rows * columns), (size_t)(rows * columns) * size);
    return qr_factors(job->routines, &p);
  }
  p.q = p.work + (size_t)p.lwork * size;
  p.r = p.q + (size_t)(rows * width) * size;
  const tf_float16 *const input = (const tf_float16 *)job->inputs[0]->data + matrix * rows * columns;
  tf_float32_from_float16_n((float *)p.a, input, rows * columns);
  const int32_t info = qr_factors(job->routines, &p);
  tf_float16 *const q = job->outputs[0]->data, *const r = job->outputs[1]->data;
  tf_float16_from_float32_n(q + matrix * rows * width, (const float *)p.q, rows * width);
  tf_float16_from_float32_n(r + matrix * r_rows * columns, (const float *)p.r, r_rows * columns);
  return info;
}

/* Small factors without the cost of a call of LAPACK, row by row from the left; like LAPACK's they stop at a pivot that
 * is not positive, while NaN goes on into the result. */
enum { SMALL_ROWS = 16 };
#define SMALL(name, real, root, parts)                                                                   \
  static int32_t small_##name(int64_t n, real *l) {                                                            \
    for (int64_t k = 0; k < n; k++) {                                                                          \
      real *const row = l + k * n * parts;                                                                     \
      real sum = 0;                                                                                            \
      for (int64_t j = 0; j < k * parts; j++) sum += row[j] * row[j];                                          \
      const real pivot = row[k * parts] - sum;                                                                 \
      if (pivot <= 0) return (int32_t)k + 1;                                                                   \
      const real x = root(pivot);                                                                              \
      row[k * parts] = x;                                                                                      \
      if (parts == 2) row[k * parts + 1] = 0;                                                                  \
      for (int64_t i = k + 1; i < n; i++) {                                                                    \
        real *const below = l + i * n * parts;                                                                 \
        real re = 0, im = 0;                                                                                   \
        for (int64_t j = 0; j < k; j++) {                                                                      \
          if (parts == 1) {                                                                                    \
            re += below[j] * row[j];                                                                           \
          } else {                                                                                             \
            re += below[2 * j] * row[2 * j] + below[2 * j + 1] * row[2 * j + 1];                               \
            im += below[2 * j + 1] * row[2 * j] - below[2 * j] * row[2 * j + 1];                               \
          }                                                                                                    \
        }                                                                                                      \
        below[k * parts] = (below[k * parts] - re) / x;                                                        \
        if (parts == 2) below[k * parts + 1] = (below[k * parts + 1] - im) / x;                                \
      }                                                                                                        \
    }                                                                                                          \
    return 0;                                                                                                  \
  }
SMALL(float32, float, sqrtf, 1)
SMALL(float64, double, sqrt, 1)
SMALL(complex64, float, sqrtf, 2)
SMALL(complex128, double, sqrt, 2)

static int32_t factor_small(int type, int64_t n, void *l) {
  switch (type) {
    case LAPACK_FLOAT32: return small_float32(n, l);
    case LAPACK_FLOAT64: return small_float64(n, l);
    case LAPACK_COMPLEX64: return small_complex64(n, l);
    default: return small_complex128(n, l);
  }
}

/* words: rows. The lower triangle is read, and the upper one of the result cleared. */
static int32_t cholesky_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  (void)workspace;
  const size_t size = job->routines->element;
  const int64_t rows = job->words[0];
  if (rows == 0) return 0;
  const char *const a = matrix_at(job, job->inputs[0], matrix, rows * rows);
  char *const l = matrix_at(job, job->outputs[0], matrix, rows * rows);
  for (int64_t i = 0; i < rows; i++) {
    memmove(l + (size_t)(i * rows) * size, a + (size_t)(i * rows) * size, (size_t)(i + 1) * size);
    memset(l + (size_t)(i * rows + i + 1) * size, 0, (size_t)(rows - i - 1) * size);
  }
  if (rows <= SMALL_ROWS) return factor_small(job->type, rows, l);
  return job->routines->potrf(LAPACK_COLUMN_MAJOR, 'U', (int32_t)rows, l, (int32_t)rows);
}

static int32_t qr(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                  const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 2, parameters, qr_matrix);
}

static int32_t cholesky(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                        const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 1, parameters, cholesky_matrix);
}

TF_TABLE(linalg_factor) = {TF_ENTRY(qr), TF_ENTRY(cholesky), TF_END};
