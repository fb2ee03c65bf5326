/* MatrixSolveLs: by the normal equations, or by a complete orthogonal factorization. */
#include <float.h>

#include "linalg/matrices.h"
#include "linalg/triangular.h"

enum { NEGATIVE_REGULARIZER = 3 };

static void add_to_diagonal(const matrix_job *job, int64_t n, double value, char *a) {
  for (int64_t i = 0; i < n; i++) {
    char *const at = a + (size_t)(i * (n + 1)) * job->routines->element;
    if (job->routines->real == 4) *(float *)at += (float)value;
    else *(double *)at += value;
  }
}

/* words: rows, columns, columns of the right-hand sides; the product of the smaller side, of which there is a factor l,
 * is A* A + r or A A* + r. Workspace: that product, and for wide matrices the right-hand sides. */
static int32_t normal_matrix(const matrix_job *job, int64_t matrix, char *gram) {
  const int64_t m = job->words[0], n = job->words[1], k = job->words[2], least = m < n ? m : n;
  const size_t size = job->routines->element;
  char *const a = matrix_at(job, job->inputs[0], matrix, m * n), *const b =
                                                                     matrix_at(job, job->inputs[1], matrix, m * k);
  char *const x = matrix_at(job, job->outputs[0], matrix, n * k);
  const int type = job->type, wide = m < n;
  memset(x, 0, (size_t)(n * k) * size);
  if (least == 0) return 0;
  if (wide) matrix_multiply(type, TF_NO_TRANSPOSE, TF_CONJUGATE_TRANSPOSE, m, m, n, a, n, a, n, gram, m);
  else matrix_multiply(type, TF_CONJUGATE_TRANSPOSE, TF_NO_TRANSPOSE, n, n, m, a, n, a, n, gram, n);
  add_to_diagonal(job, least, *(const double *)job->inputs[2]->data, gram);
  for (int64_t i = 0; i < least; i++)
    memset(gram + (size_t)(i * least + i + 1) * size, 0, (size_t)(least - i - 1) * size);
  const int32_t info = triangular_factor(type, least, gram);
  if (info || k == 0) return info;
  char *const y = wide ? gram + (size_t)(least * least) * size : x;
  if (wide) memcpy(y, b, (size_t)(m * k) * size);
  else matrix_multiply(type, TF_CONJUGATE_TRANSPOSE, TF_NO_TRANSPOSE, n, k, m, a, n, b, k, y, k);
  triangular_solve(type, least, k, 1, 0, gram, y);
  triangular_solve(type, least, k, 1, 1, gram, y);
  if (wide) matrix_multiply(type, TF_CONJUGATE_TRANSPOSE, TF_NO_TRANSPOSE, n, k, m, a, n, y, k, x, k);
  return 0;
}

/* words: as above, and the length of LAPACK's work. Workspace: both matrices column-major (that of the right-hand sides
 * with as many rows as the larger side), work, 2 n real numbers, n integers. */
static int32_t orthogonal_matrix(const matrix_job *job, int64_t matrix, char *a) {
  const int64_t m = job->words[0], n = job->words[1], k = job->words[2], most = m > n ? m : n, least = m < n ? m : n;
  const size_t size = job->routines->element;
  const int32_t lwork = (int32_t)job->words[3];
  char *const b = a + (size_t)(m * n) * size, *const work = b + (size_t)(most * k) * size;
  char *const rwork = work + (size_t)lwork * size;
  int32_t *const pivots = (int32_t *)(rwork + (size_t)(2 * n) * job->routines->real);
  const char *const rhs = matrix_at(job, job->inputs[1], matrix, m * k);
  char *const x = matrix_at(job, job->outputs[0], matrix, n * k);
  memset(x, 0, (size_t)(n * k) * size);
  if (least == 0 || k == 0) return 0;
  matrix_transpose(job, m, n, matrix_at(job, job->inputs[0], matrix, m * n), a);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < k; j++) memcpy(b + (size_t)(j * most + i) * size, rhs + (size_t)(i * k + j) * size, size);
  memset(pivots, 0, (size_t)n * sizeof *pivots);
  const double epsilon = job->routines->real == 4 ? FLT_EPSILON : DBL_EPSILON;
  const int32_t info = tf_gelsy(job->type, (int32_t)m, (int32_t)n, (int32_t)k, a, b, (int32_t)most, pivots,
                                epsilon * (double)least, work, lwork, rwork);
  if (info) return info;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < k; j++) memcpy(x + (size_t)(i * k + j) * size, b + (size_t)(j * most + i) * size, size);
  return 0;
}

static int32_t matrix_solve_ls(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                               const int64_t *parameters) {
  if (*(const double *)inputs[2]->data < 0)
    return tf_fail(context, TF_INVALID_ARGUMENT, NEGATIVE_REGULARIZER, 0, 0, 0, 0);
  const int fast = parameters[MATRIX_WORDS + 3] == 0;
  return matrices_run(context, inputs, outputs, 1, parameters, fast ? normal_matrix : orthogonal_matrix);
}

TF_TABLE(linalg_least_squares) = {TF_ENTRY(matrix_solve_ls), TF_END};
