/* What the kernels of matrix decompositions share: they treat the matrices of a batch one by one, on threads. */
#ifndef TIMBERFRAME_CPU_MATRICES_H
#define TIMBERFRAME_CPU_MATRICES_H

#include <string.h>

#include "common/lapack.h"
#include "common/table.h"

enum { MATRIX_SLOTS = 32, MATRIX_WORDS = 4, MATRIX_FAULT = 1, MATRIX_INTERNAL = 2 };

/* A batch under work. Its parameters begin with the number of the type in tf_lapack, of matrices, of slots (each with a
 * workspace of its own; slot s treats matrices s, s + slots, ...) and of the workspace's bytes; `words` are those
 * after. */
typedef struct matrix_job {
  const tf_tensor *const *inputs;
  tf_tensor *const *outputs;
  const int64_t *words;
  const lapack_routines *routines;
  int type;
  int64_t count, slots, workspace_bytes;
  char *workspace;
  int32_t (*body)(const struct matrix_job *job, int64_t matrix, char *workspace);
  struct {
    int64_t matrix;
    int32_t info;
  } faults[MATRIX_SLOTS];
} matrix_job;

static void matrix_range(void *argument, int64_t begin, int64_t end) {
  matrix_job *job = argument;
  for (int64_t slot = begin; slot < end; slot++) {
    for (int64_t i = slot; i < job->count && !job->faults[slot].info; i += job->slots) {
      job->faults[slot].matrix = i;
      job->faults[slot].info = job->body(job, i, job->workspace + slot * job->workspace_bytes);
    }
  }
}

/* Treats all matrices with `body`, which returns what LAPACK returned. Reasons: MATRIX_FAULT with the number of the
 * first matrix that is at fault and of the row or column where it is; MATRIX_INTERNAL with the argument that LAPACK
 * refused. */
static int32_t matrices_run(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            int64_t output_count, const int64_t *parameters,
                            int32_t (*body)(const matrix_job *, int64_t, char *)) {
  const int type = (int)parameters[0];
  matrix_job job = {inputs,
                    outputs,
                    parameters + MATRIX_WORDS,
                    &tf_lapack[type],
                    type,
                    parameters[1],
                    parameters[2],
                    parameters[3],
                    outputs[output_count]->data,
                    body,
                    {{0, 0}}};
  context->parallel_for(context, job.slots, 1, matrix_range, &job);
  int64_t first = -1;
  for (int64_t slot = 0; slot < job.slots; slot++)
    if (job.faults[slot].info && (first < 0 || job.faults[slot].matrix < job.faults[first].matrix)) first = slot;
  if (first < 0) return TF_OK;
  const int32_t info = job.faults[first].info;
  if (info < 0) return tf_fail(context, TF_INTERNAL, MATRIX_INTERNAL, job.faults[first].matrix, -info, 0, 0);
  return tf_fail(context, TF_INVALID_ARGUMENT, MATRIX_FAULT, job.faults[first].matrix, info - 1, 0, 0);
}

/* Copies a rows x columns matrix in transposed order; elements have 4, 8 or 16 bytes, and any alignment. */
#define TRANSPOSED(bytes)                                                                                  \
  static inline void transposed_##bytes(int64_t rows, int64_t columns, const char *from, char *to) {       \
    enum { TILE = 16 };                                                                                    \
    for (int64_t i = 0; i < rows; i += TILE)                                                               \
      for (int64_t j = 0; j < columns; j += TILE)                                                          \
        for (int64_t k = i; k < rows && k < i + TILE; k++)                                                 \
          for (int64_t l = j; l < columns && l < j + TILE; l++)                                            \
            memcpy(to + (l * rows + k) * bytes, from + (k * columns + l) * bytes, bytes);                  \
  }
TRANSPOSED(4)
TRANSPOSED(8)
TRANSPOSED(16)

typedef struct matrix_pair {
  double re, im;
} matrix_pair;

static inline void matrix_transpose(const matrix_job *job, int64_t rows, int64_t columns, const void *from, void *to) {
  if (job->routines->element == 4) transposed_4(rows, columns, from, to);
  else if (job->routines->element == 8) transposed_8(rows, columns, from, to);
  else transposed_16(rows, columns, from, to);
}

/* Changes the sign of the imaginary parts of `count` elements. */
static inline void matrix_conjugate(const matrix_job *job, int64_t count, void *data) {
  if (job->type == LAPACK_COMPLEX64)
    for (int64_t i = 0; i < count; i++) ((float *)data)[2 * i + 1] *= -1;
  else if (job->type == LAPACK_COMPLEX128)
    for (int64_t i = 0; i < count; i++) ((double *)data)[2 * i + 1] *= -1;
}

/* Whether all `count` numbers (two for a complex element) are finite: 0 x is 0 for those alone. */
static inline int matrix_is_finite(const matrix_job *job, int64_t count, const void *data) {
  const int64_t numbers = count * (int64_t)(job->routines->element / job->routines->real);
  double sum = 0;
  if (job->routines->real == 4)
    for (int64_t i = 0; i < numbers; i++) sum += 0 * ((const float *)data)[i];
  else
    for (int64_t i = 0; i < numbers; i++) sum += 0 * ((const double *)data)[i];
  return sum == 0;
}

/* Real numbers as elements of the job's type. */
static inline void matrix_from_real(const matrix_job *job, int64_t count, const void *real, void *to) {
  if (job->type == LAPACK_COMPLEX64)
    for (int64_t i = 0; i < count; i++) ((float *)to)[2 * i] = ((const float *)real)[i], ((float *)to)[2 * i + 1] = 0;
  else if (job->type == LAPACK_COMPLEX128)
    for (int64_t i = 0; i < count; i++)
      ((double *)to)[2 * i] = ((const double *)real)[i], ((double *)to)[2 * i + 1] = 0;
  else memcpy(to, real, (size_t)count * job->routines->real);
}

static inline void matrix_identity(const matrix_job *job, int64_t rows, void *x) {
  static const float single = 1;
  static const double one = 1;
  memset(x, 0, (size_t)(rows * rows) * job->routines->element);
  for (int64_t i = 0; i < rows; i++)
    memcpy((char *)x + (size_t)(i * (rows + 1)) * job->routines->element,
           job->routines->real == 4 ? (const void *)&single : (const void *)&one, job->routines->real);
}

/* Matrix number `matrix` of a tensor whose matrices have this many elements. */
static inline char *matrix_at(const matrix_job *job, const tf_tensor *t, int64_t matrix, int64_t elements) {
  return (char *)t->data + (size_t)(matrix * elements) * job->routines->element;
}

#endif
