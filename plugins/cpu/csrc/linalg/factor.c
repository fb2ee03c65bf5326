/* Qr and Cholesky.
 *
 * LAPACK sees row-major matrices transposed. So A = Q R is had as the transposed A's factors L Q', and the lower factor
 * of Cholesky as the upper one, both without moving anything. */
#include "common/half.h"
#include "linalg/matrices.h"
#include "linalg/triangular.h"

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

/* lower_half: the upper triangle becomes zero and the diagonal half; symmetric: the mean of x and its transpose. */
#define TRIANGLES(name, real)                                                                     \
  static void lower_half_##name(int64_t n, real *x) {                                             \
    for (int64_t i = 0; i < n; i++) {                                                             \
      x[i * n + i] *= (real)0.5;                                                                  \
      for (int64_t j = i + 1; j < n; j++) x[i * n + j] = 0;                                       \
    }                                                                                             \
  }                                                                                               \
  static void symmetric_##name(int64_t n, const real *x, real *out) {                             \
    for (int64_t i = 0; i < n; i++)                                                               \
      for (int64_t j = 0; j < n; j++) out[i * n + j] = (x[i * n + j] + x[j * n + i]) * (real)0.5; \
  }
TRIANGLES(float32, float)
TRIANGLES(float64, double)

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
  return triangular_factor(job->type, rows, l);
}

/* words: rows. Workspace: two matrices. With P the lower triangle of l* grad, its diagonal halved, and S = l^-* P l^-1,
 * the output is (S + S^T) / 2. Real types alone; lower triangles are read. */
static int32_t cholesky_grad_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  const int64_t rows = job->words[0], elements = rows * rows;
  const size_t size = job->routines->element;
  const int32_t n = (int32_t)rows;
  char *const l = workspace, *const s = l + (size_t)elements * size;
  char *const out = matrix_at(job, job->outputs[0], matrix, elements);
  if (rows == 0) return 0;
  memset(workspace, 0, (size_t)(2 * elements) * size);
  for (int64_t i = 0; i < rows; i++) {
    const size_t row = (size_t)(i * rows) * size, count = (size_t)(i + 1) * size;
    memcpy(l + row, matrix_at(job, job->inputs[0], matrix, elements) + row, count);
    memcpy(s + row, matrix_at(job, job->inputs[1], matrix, elements) + row, count);
  }
  matrix_multiply(job->type, TF_TRANSPOSE, TF_NO_TRANSPOSE, n, n, n, l, n, s, n, out, n);
  if (size == 4) lower_half_float32(rows, (float *)out);
  else lower_half_float64(rows, (double *)out);
  triangular_solve(job->type, rows, rows, 1, 1, l, out);
  matrix_transpose(job, rows, rows, out, s); /* S^T = l^-* (l^-* P)^T */
  triangular_solve(job->type, rows, rows, 1, 1, l, s);
  if (size == 4) symmetric_float32(rows, (const float *)s, (float *)out);
  else symmetric_float64(rows, (const double *)s, (double *)out);
  return 0;
}

static int32_t qr(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                  const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 2, parameters, qr_matrix);
}

static int32_t cholesky(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                        const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 1, parameters, cholesky_matrix);
}

static int32_t cholesky_grad(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                             const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 1, parameters, cholesky_grad_matrix);
}

TF_TABLE(linalg_factor) = {TF_ENTRY(qr), TF_ENTRY(cholesky), TF_ENTRY(cholesky_grad), TF_END};
