/* Matrix products of each dtype, and batches of them. */
#include "linalg/gemm.h"

#include <string.h>

#include "common/blas.h"

static int clear(const gemm_block *g, void *c, int64_t element) {
  for (int64_t i = 0; i < g->m; i++) memset((char *)c + i * g->ldc * element, 0, (size_t)(g->n * element));
  return 0;
}

enum { SHORT_DEPTH = 8, FEW_COLUMNS = 2 };

/* A product with a vector on one side is a matrix-vector product; its result is contiguous then. Short sums for a few
 * columns are made one by one: tiles would be mostly empty. */
#define REAL_GEMM(name, type, gemm, gemv, panel_gemm)                                                   \
  static int short_##name(const gemm_block *g, const type *a, const type *b, type *c) {                 \
    const int64_t a_row = g->transpose_a ? 1 : g->lda, a_step = g->transpose_a ? g->lda : 1;            \
    const int64_t b_row = g->transpose_b ? 1 : g->ldb, b_step = g->transpose_b ? g->ldb : 1;            \
    for (int64_t i = 0; i < g->m; i++) {                                                                \
      for (int64_t j = 0; j < g->n; j++) {                                                              \
        type sum = 0;                                                                                   \
        for (int64_t k = 0; k < g->k; k++) sum += a[i * a_row + k * a_step] * b[k * b_row + j * b_step];\
        c[i * g->ldc + j] = sum;                                                                        \
      }                                                                                                 \
    }                                                                                                   \
    return 0;                                                                                           \
  }                                                                                                     \
  int gemm_##name(const gemm_block *g, const void *a, const void *b, void *c) {                         \
    if (g->k == 0) return clear(g, c, sizeof(type));                                                    \
    if (g->n <= FEW_COLUMNS && g->k <= SHORT_DEPTH) return short_##name(g, a, b, c);                    \
    if (small_gemm_##name(g, a, b, c) == 0) return 0;                                                   \
    if (g->m == 1 && (g->transpose_a == 0 || g->lda == 1)) {                                            \
      clear(g, c, sizeof(type));                                                                        \
      const int64_t rows = g->transpose_b ? g->n : g->k, columns = g->transpose_b ? g->k : g->n;        \
      return gemv(!g->transpose_b, rows, columns, 1, b, g->ldb, a, 1, 1, c, 1);                         \
    }                                                                                                   \
    if (panel_gemm(g, a, b, c) == 0) return 0;                                                          \
    return gemm(g->transpose_a, g->transpose_b, g->m, g->n, g->k, 1, a, g->lda, b, g->ldb, 0, c, g->ldc);\
  }
#define NO_PANEL_GEMM(g, a, b, c) (-1) /* the BLAS is as fast */
REAL_GEMM(float32, float, tf_sgemm, tf_sgemv, panel_gemm_float32)
REAL_GEMM(float64, double, tf_dgemm, tf_dgemv, NO_PANEL_GEMM)

#define COMPLEX_GEMM(name, type, real, gemm)                                                                   \
  int gemm_##name(const gemm_block *g, const void *a, const void *b, void *c) {                                \
    static const real one[2] = {1, 0}, zero[2] = {0, 0};                                                       \
    if (g->k == 0) return clear(g, c, sizeof(type));                                                           \
    return gemm(g->transpose_a, g->transpose_b, g->m, g->n, g->k, one, a, g->lda, b, g->ldb, zero, c, g->ldc); \
  }
COMPLEX_GEMM(complex64, tf_complex64, float, tf_cgemm)
COMPLEX_GEMM(complex128, tf_complex128, double, tf_zgemm)

enum { COLUMNS = 64, DEPTH = 64 };

/* Integers: a panel of B is copied side by side, then rows of C grow by four of its rows at a time. Unsigned arithmetic
 * wraps; `wide` is a type in which the product of two elements does not overflow into undefined behaviour. */
#define INTEGER_GEMM(name, type, wide)                                                                             \
  int gemm_##name(const gemm_block *g, const void *a_data, const void *b_data, void *c_data) {                     \
    const type *a = a_data, *b = b_data;                                                                           \
    type *c = c_data, panel[DEPTH][COLUMNS];                                                                       \
    const int64_t a_row = g->transpose_a ? 1 : g->lda, a_step = g->transpose_a ? g->lda : 1;                       \
    const int64_t b_row = g->transpose_b ? 1 : g->ldb, b_step = g->transpose_b ? g->ldb : 1;                       \
    clear(g, c, sizeof(type));                                                                                     \
    for (int64_t j0 = 0; j0 < g->n; j0 += COLUMNS) {                                                               \
      const int64_t columns = g->n - j0 < COLUMNS ? g->n - j0 : COLUMNS;                                           \
      for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {                                                               \
        const int64_t depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH, padded = (depth + 3) / 4 * 4;                 \
        memset(panel, 0, sizeof panel);                                                                            \
        for (int64_t k = 0; k < depth; k++) {                                                                      \
          for (int64_t j = 0; j < columns; j++) panel[k][j] = b[(k0 + k) * b_row + (j0 + j) * b_step];             \
        }                                                                                                          \
        for (int64_t i = 0; i < g->m; i++) {                                                                       \
          type sums[COLUMNS] = {0}, row[DEPTH] = {0};                                                              \
          for (int64_t k = 0; k < depth; k++) row[k] = a[i * a_row + (k0 + k) * a_step];                           \
          for (int64_t k = 0; k < padded; k += 4) {                                                                \
            const wide a0 = row[k], a1 = row[k + 1], a2 = row[k + 2], a3 = row[k + 3];                             \
            for (int64_t j = 0; j < COLUMNS; j++) {                                                                \
              sums[j] = (type)(sums[j] + a0 * panel[k][j] + a1 * panel[k + 1][j] + a2 * panel[k + 2][j] +          \
                               a3 * panel[k + 3][j]);                                                              \
            }                                                                                                      \
          }                                                                                                        \
          for (int64_t j = 0; j < columns; j++) c[i * g->ldc + j0 + j] = (type)(c[i * g->ldc + j0 + j] + sums[j]); \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
    return 0;                                                                                                      \
  }
INTEGER_GEMM(int16, uint16_t, unsigned)
INTEGER_GEMM(int32, uint32_t, uint32_t)
INTEGER_GEMM(int64, uint64_t, uint64_t)

typedef struct batch_job {
  const gemm_batch *batch;
  gemm_function *function;
  int64_t element;
  const char *a, *b;
  char *c;
  int32_t failed;
} batch_job;

static void run_blocks(void *argument, int64_t begin, int64_t end) {
  batch_job *job = argument;
  const gemm_batch *s = job->batch;
  const int64_t down = (s->m + s->block_rows - 1) / s->block_rows;
  const int64_t across = (s->n + s->block_columns - 1) / s->block_columns;
  const int64_t lda = s->transpose_a ? s->m : s->k, ldb = s->transpose_b ? s->k : s->n;
  for (int64_t item = begin; item < end; item++) {
    int64_t index = item / (down * across), a = 0, b = 0;
    const int64_t row = item / across % down * s->block_rows, column = item % across * s->block_columns;
    const int64_t c = (index * s->m + row) * s->n + column;
    for (int64_t d = s->rank - 1; d >= 0; d--) {
      const int64_t at = index % s->dims[d];
      index /= s->dims[d];
      a += at * s->dims[s->rank + d];
      b += at * s->dims[2 * s->rank + d];
    }
    a = a * s->m * s->k + (s->transpose_a ? row : row * lda);
    b = b * s->k * s->n + (s->transpose_b ? column * ldb : column);
    const gemm_block block = {(int)s->transpose_a,
                              (int)s->transpose_b,
                              s->m - row < s->block_rows ? s->m - row : s->block_rows,
                              s->n - column < s->block_columns ? s->n - column : s->block_columns,
                              s->k,
                              lda > 0 ? lda : 1,
                              ldb > 0 ? ldb : 1,
                              s->n};
    if (job->function(&block, job->a + a * job->element, job->b + b * job->element, job->c + c * job->element) != 0) {
      __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    }
  }
}

int32_t gemm_run(tf_context *context, const gemm_batch *batch, gemm_function *function, int64_t element, const void *a,
                 const void *b, void *c) {
  if (batch->m == 0 || batch->n == 0 || batch->count == 0) return TF_OK;
  batch_job job = {batch, function, element, a, b, c, 0};
  const int64_t down = (batch->m + batch->block_rows - 1) / batch->block_rows;
  const int64_t across = (batch->n + batch->block_columns - 1) / batch->block_columns;
  const int64_t work = batch->m * batch->n * (batch->k + 1) / (down * across) + 1;
  const int64_t grain = work < 1 << 16 ? (1 << 16) / work : 1;
  context->parallel_for(context, batch->count * down * across, grain, run_blocks, &job);
  if (job.failed) return tf_fail(context, TF_UNIMPLEMENTED, 1, batch->m, batch->n, batch->k, 0);
  return TF_OK;
}
