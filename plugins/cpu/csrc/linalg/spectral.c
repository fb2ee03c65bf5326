/* SelfAdjointEigV2 and Svd. LAPACK sees a row-major matrix transposed: of a self-adjoint one it finds the conjugate
 * eigenvectors, of A = U S V* the factors conj(V) S U transposed. */
#include <float.h>
#include <math.h>

#include "linalg/matrices.h"

enum { NOT_FOUND = 1, SMALL_ROWS = 64 };

static size_t padded(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/* Fills `count` elements with NaN. */
static void fill_nan(const matrix_job *job, int64_t count, void *data) {
  const int64_t numbers = count * (int64_t)(job->routines->element / job->routines->real);
  for (int64_t i = 0; i < numbers; i++) {
    if (job->routines->real == 4) ((float *)data)[i] = NAN;
    else ((double *)data)[i] = NAN;
  }
}

/* The implicit QR algorithm with Wilkinson's shift on a tridiagonal matrix (Golub and Van Loan, Matrix Computations,
 * 4th ed., section 8.3): d its diagonal, e what is below, q the vectors so far, one after the other, of `length` real
 * numbers each. Values end in rising order. Returns 1 where they do not converge. */
#define TRIDIAGONAL(name, real, root, hypotenuse, absolute, epsilon, least)                             \
  static void step_##name(real *d, real *e, int64_t start, int64_t end, real *q, int64_t length) {      \
    const real half = (d[end - 1] - d[end]) * (real)0.5, last = e[end - 1];                             \
    real shift = d[end];                                                                                \
    if (half == 0) {                                                                                    \
      shift -= absolute(last);                                                                          \
    } else if (last != 0) {                                                                             \
      const real h = hypotenuse(half, last), by = half + (half > 0 ? h : -h), square = last * last;     \
      shift -= square == 0 ? last / (by / last) : square / by;                                          \
    }                                                                                                   \
    real x = d[start] - shift, z = e[start];                                                            \
    for (int64_t k = start; k < end && z != 0; k++) {                                                   \
      real c, s; /* turn (x, z) into (r, 0), r being positive */                                        \
      if (x == 0) {                                                                                     \
        c = 0, s = z < 0 ? 1 : -1;                                                                      \
      } else if (absolute(x) > absolute(z)) {                                                           \
        const real t = z / x, u = root(1 + t * t);                                                      \
        c = 1 / (x < 0 ? -u : u), s = -t * c;                                                           \
      } else {                                                                                          \
        const real t = x / z, u = root(1 + t * t);                                                      \
        s = -1 / (z < 0 ? -u : u), c = -t * s;                                                          \
      }                                                                                                 \
      const real low = s * d[k] + c * e[k], high = s * e[k] + c * d[k + 1];                             \
      d[k] = c * (c * d[k] - s * e[k]) - s * (c * e[k] - s * d[k + 1]);                                 \
      d[k + 1] = s * low + c * high;                                                                    \
      e[k] = c * low - s * high;                                                                        \
      if (k > start) e[k - 1] = c * e[k - 1] - s * z;                                                   \
      x = e[k];                                                                                         \
      if (k < end - 1) z = -s * e[k + 1], e[k + 1] *= c;                                                \
      real *const left = q + k * length, *const right = left + length;                                  \
      for (int64_t i = 0; i < length; i++) {                                                            \
        const real a = left[i], b = right[i];                                                           \
        left[i] = c * a - s * b, right[i] = s * a + c * b;                                              \
      }                                                                                                 \
    }                                                                                                   \
  }                                                                                                     \
  static int32_t diagonalise_##name(int64_t n, real *d, real *e, real *q, int64_t length) {             \
    for (int64_t end = n - 1, steps = 0; end > 0;) {                                                    \
      for (int64_t i = 0; i < end; i++) {                                                               \
        const real scaled = e[i] / epsilon;                                                             \
        if (absolute(e[i]) < least || scaled * scaled <= absolute(d[i]) + absolute(d[i + 1])) e[i] = 0; \
      }                                                                                                 \
      while (end > 0 && e[end - 1] == 0) end--;                                                         \
      if (end == 0) break;                                                                              \
      if (++steps > 30 * n) return NOT_FOUND;                                                           \
      int64_t start = end - 1;                                                                          \
      while (start > 0 && e[start - 1] != 0) start--;                                                   \
      step_##name(d, e, start, end, q, length);                                                         \
    }                                                                                                   \
    for (int64_t i = 0; i < n - 1; i++) {                                                               \
      int64_t first = i;                                                                                \
      for (int64_t j = i + 1; j < n; j++)                                                               \
        if (d[j] < d[first]) first = j;                                                                 \
      if (first == i) continue;                                                                         \
      const real value = d[i];                                                                          \
      d[i] = d[first], d[first] = value;                                                                \
      for (int64_t j = 0; j < length; j++) {                                                            \
        const real kept = q[i * length + j];                                                            \
        q[i * length + j] = q[first * length + j], q[first * length + j] = kept;                        \
      }                                                                                                 \
    }                                                                                                   \
    return 0;                                                                                           \
  }
TRIDIAGONAL(float32, float, sqrtf, hypotf, fabsf, FLT_EPSILON, FLT_MIN)
TRIDIAGONAL(float64, double, sqrt, hypot, fabs, DBL_EPSILON, DBL_MIN)

/* The largest modulus in the lower triangle, 1 where all are zero; elements are divided by it, so that the test above
 * for what counts as zero suits them. */
#define SCALED(name, real, root)                                          \
  static real scale_##name(int64_t n, int64_t parts, real *a) {           \
    real largest = 0;                                                     \
    for (int64_t i = 0; i < n; i++)                                       \
      for (int64_t j = 0; j <= i; j++) {                                  \
        const real *const at = a + (i * n + j) * parts;                   \
        const real size = parts == 2 ? hypot(at[0], at[1]) : root(at[0]); \
        if (size > largest) largest = size;                               \
      }                                                                   \
    if (largest == 0) return 1;                                           \
    for (int64_t i = 0; i < n * n * parts; i++) a[i] /= largest;          \
    return largest;                                                       \
  }
SCALED(float32, float, fabsf)
SCALED(float64, double, fabs)

/* Vectors of a small matrix, by steps whose signs are those of TensorFlow's kernel. `a` is row-major and is written. */
static int32_t small_vectors(const matrix_job *job, int64_t rows, char *a, char *v, char *d, char *work,
                             int32_t lwork) {
  const lapack_routines *const lapack = job->routines;
  const size_t real = lapack->real;
  const int64_t parts = (int64_t)(lapack->element / real);
  const int32_t n = (int32_t)rows;
  char *const e = work, *const tau = e + padded((size_t)rows * real),
              *const rest = tau + padded((size_t)rows * 2 * real);
  const float single = real == 4 ? scale_float32(rows, parts, (float *)a) : 0;
  const double twofold = real == 8 ? scale_float64(rows, parts, (double *)a) : 0;
  matrix_transpose(job, rows, rows, a, v);
  int32_t info = 0;
  if (rows == 1) {
    memcpy(d, v, real);
    matrix_identity(job, 1, v);
  } else {
    info = lapack->sytrd(LAPACK_COLUMN_MAJOR, 'L', n, v, n, d, e, tau, rest, lwork);
    if (!info) info = lapack->orgtr(LAPACK_COLUMN_MAJOR, 'L', n, v, n, tau, rest, lwork);
  }
  if (info) return info;
  memcpy(a, v, (size_t)(rows * rows) * lapack->element);
  info = real == 4 ? diagonalise_float32(rows, (float *)d, (float *)e, (float *)a, rows * parts)
                   : diagonalise_float64(rows, (double *)d, (double *)e, (double *)a, rows * parts);
  for (int64_t i = 0; i < rows; i++) {
    if (real == 4) ((float *)d)[i] *= single;
    else ((double *)d)[i] *= twofold;
  }
  matrix_transpose(job, rows, rows, a, v);
  return info;
}

/* words: rows, whether vectors are wanted, lengths of LAPACK's work, rwork (in real numbers) and iwork. Workspace: the
 * matrix, the eigenvalues, and these three. The lower triangle is read. */
static int32_t eigen_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  const lapack_routines *const lapack = job->routines;
  const int64_t rows = job->words[0], vectors = job->words[1], elements = rows * rows;
  const int32_t n = (int32_t)rows, lwork = (int32_t)job->words[2], lrwork = (int32_t)job->words[3];
  if (rows == 0) return 0;
  char *const a = workspace, *const values = a + padded((size_t)elements * lapack->element);
  char *const work = values + padded((size_t)rows * lapack->real);
  char *const rwork = work + padded((size_t)lwork * lapack->element);
  int32_t *const iwork = (int32_t *)(rwork + padded((size_t)lrwork * lapack->real));
  memcpy(a, matrix_at(job, job->inputs[0], matrix, elements), (size_t)elements * lapack->element);
  for (int64_t i = 0; i < rows; i++)
    if (!matrix_is_finite(job, i + 1, a + (size_t)(i * rows) * lapack->element)) return NOT_FOUND;
  char *const v = vectors ? matrix_at(job, job->outputs[1], matrix, elements) : NULL;
  if (vectors && rows <= SMALL_ROWS) {
    const int32_t info = small_vectors(job, rows, a, v, values, work, lwork / 2);
    if (!info) matrix_from_real(job, rows, values, matrix_at(job, job->outputs[0], matrix, rows));
    return info;
  }
  const char task = vectors ? 'V' : 'N';
  const int32_t info = lapack->syevd ? lapack->syevd(LAPACK_COLUMN_MAJOR, task, 'U', n, a, n, values, work, lwork,
                                                     iwork, (int32_t)job->words[4])
                                     : lapack->heevd(LAPACK_COLUMN_MAJOR, task, 'U', n, a, n, values, work, lwork,
                                                     rwork, lrwork, iwork, (int32_t)job->words[4]);
  if (info) return info;
  matrix_from_real(job, rows, values, matrix_at(job, job->outputs[0], matrix, rows));
  if (vectors) {
    matrix_transpose(job, rows, rows, a, v);
    matrix_conjugate(job, elements, v);
  }
  return 0;
}

/* words: rows, columns, whether vectors are wanted, whether all of them; lengths of LAPACK's work and of rwork (in real
 * numbers). Workspace: the matrix, the values, the columns' vectors, work, rwork, and 8 min(rows, columns) integers. */
static int32_t svd_matrix(const matrix_job *job, int64_t matrix, char *workspace) {
  const lapack_routines *const lapack = job->routines;
  const int64_t rows = job->words[0], columns = job->words[1], vectors = job->words[2], full = job->words[3];
  const int64_t least = rows < columns ? rows : columns;
  const int64_t u_width = full ? rows : least, v_width = full ? columns : least;
  const int32_t m = (int32_t)columns, n = (int32_t)rows, lwork = (int32_t)job->words[4];
  char *const a = workspace, *const values = a + padded((size_t)(rows * columns) * lapack->element);
  char *const right = values + padded((size_t)least * lapack->real);
  char *const work = right + (vectors ? padded((size_t)(columns * v_width) * lapack->element) : 0);
  char *const rwork = work + padded((size_t)lwork * lapack->element);
  int32_t *const iwork = (int32_t *)(rwork + padded((size_t)job->words[5] * lapack->real));
  char *const s = matrix_at(job, job->outputs[0], matrix, least);
  char *const u = vectors ? matrix_at(job, job->outputs[1], matrix, rows * u_width) : NULL;
  char *const v = vectors ? matrix_at(job, job->outputs[2], matrix, columns * v_width) : NULL;
  if (least == 0) {
    if (vectors && full) matrix_identity(job, rows, u), matrix_identity(job, columns, v);
    return 0;
  }
  memcpy(a, matrix_at(job, job->inputs[0], matrix, rows * columns), (size_t)(rows * columns) * lapack->element);
  if (!matrix_is_finite(job, rows * columns, a)) {
    fill_nan(job, least, s);
    if (vectors) fill_nan(job, rows * u_width, u), fill_nan(job, columns * v_width, v);
    return 0;
  }
  const char task = !vectors ? 'N' : full ? 'A' : 'S';
  const int32_t ldu = (int32_t)u_width > 1 ? (int32_t)u_width : 1;
  const int32_t info =
      lapack->gesdd ? lapack->gesdd(LAPACK_COLUMN_MAJOR, task, m, n, a, m, values, right, m, u, ldu, work, lwork, iwork)
                    : lapack->complex_gesdd(LAPACK_COLUMN_MAJOR, task, m, n, a, m, values, right, m, u, ldu, work,
                                            lwork, rwork, iwork);
  if (info) return info;
  matrix_from_real(job, least, values, s);
  if (vectors) {
    matrix_transpose(job, v_width, columns, right, v);
    matrix_conjugate(job, columns * v_width, v);
  }
  return 0;
}

static int32_t self_adjoint_eig(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 2, parameters, eigen_matrix);
}

static int32_t svd(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                   const int64_t *parameters) {
  return matrices_run(context, inputs, outputs, 3, parameters, svd_matrix);
}

TF_TABLE(linalg_spectral) = {TF_ENTRY(self_adjoint_eig), TF_ENTRY(svd), TF_END};
