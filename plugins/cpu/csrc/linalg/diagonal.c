/* Diagonals and bands of matrices, by the size of an element. */
#include <string.h>

#include "common/table.h"

enum { GRAIN = 1 << 15 };

/* Parameters of the diagonal kernels. Diagonals run from `upper` down to `lower`; the packed form has one row of
 * `longest` positions for each, filled from the left where left_above (diagonals above the main one) or left_below says
 * so. */
typedef struct diagonal_shape {
  int64_t batch, rows, columns, lower, upper, longest, left_above, left_below;
} diagonal_shape;

typedef struct diagonal_job {
  const diagonal_shape *shape;
  const char *from;
  char *to;
  const char *padding; /* one element, or NULL for zero */
} diagonal_job;

/* One diagonal: its first position in the matrix and in a packed row, and its length. */
typedef struct diagonal {
  int64_t row, column, at, length;
} diagonal;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static diagonal locate(const diagonal_shape *s, int64_t d) {
  const int64_t below = d < 0 ? -d : 0, above = d > 0 ? d : 0;
  const int64_t length = least(s->rows - below, s->columns - above);
  const int left = (d >= 0 && s->left_above) || (d <= 0 && s->left_below);
  const diagonal found = {below, above, left ? 0 : s->longest - (length > 0 ? length : 0), length > 0 ? length : 0};
  return found;
}

typedef struct element16 {
  uint64_t half[2];
} element16;

#define DIAGONALS(bytes, type)                                                                                       \
  static void fill_##bytes(type *out, int64_t count, const char *padding) {                                          \
    type value;                                                                                                      \
    memset(&value, 0, sizeof value);                                                                                 \
    if (padding) memcpy(&value, padding, sizeof value);                                                              \
    for (int64_t i = 0; i < count; i++) out[i] = value;                                                              \
  }                                                                                                                  \
  static void part_range_##bytes(void *argument, int64_t begin, int64_t end) {                                       \
    const diagonal_job *job = argument;                                                                              \
    const diagonal_shape *s = job->shape;                                                                            \
    for (; begin < end; begin++) {                                                                                   \
      const type *matrix = (const type *)(const void *)job->from + begin * s->rows * s->columns;                     \
      type *packed = (type *)(void *)job->to + begin * (s->upper - s->lower + 1) * s->longest;                       \
      for (int64_t d = s->upper; d >= s->lower; d--, packed += s->longest) {                                         \
        const diagonal g = locate(s, d);                                                                             \
        fill_##bytes(packed, g.at, job->padding);                                                                    \
        fill_##bytes(packed + g.at + g.length, s->longest - g.at - g.length, job->padding);                          \
        for (int64_t i = 0; i < g.length; i++) packed[g.at + i] = matrix[(g.row + i) * s->columns + g.column + i];   \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  static void set_range_##bytes(void *argument, int64_t begin, int64_t end) {                                        \
    const diagonal_job *job = argument;                                                                              \
    const diagonal_shape *s = job->shape;                                                                            \
    for (; begin < end; begin++) {                                                                                   \
      const type *packed = (const type *)(const void *)job->from + begin * (s->upper - s->lower + 1) * s->longest;   \
      type *matrix = (type *)(void *)job->to + begin * s->rows * s->columns;                                         \
      for (int64_t d = s->upper; d >= s->lower; d--, packed += s->longest) {                                         \
        const diagonal g = locate(s, d);                                                                             \
        for (int64_t i = 0; i < g.length; i++) matrix[(g.row + i) * s->columns + g.column + i] = packed[g.at + i];   \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  static void diag_range_##bytes(void *argument, int64_t begin, int64_t end) {                                       \
    const diagonal_job *job = argument;                                                                              \
    const int64_t size = job->shape->rows * job->shape->columns;                                                     \
    fill_##bytes((type *)(void *)job->to + begin * size, (end - begin) * size, job->padding);                        \
    set_range_##bytes(argument, begin, end);                                                                         \
  }                                                                                                                  \
  static int32_t matrix_diag_part_##bytes(tf_context *context, const tf_tensor *const *inputs,                       \
                                          tf_tensor *const *outputs, const int64_t *parameters) {                    \
    return run(context, inputs, outputs, parameters, part_range_##bytes);                                            \
  }                                                                                                                  \
  static int32_t matrix_diag_##bytes(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                     const int64_t *parameters) {                                                    \
    return run(context, inputs, outputs, parameters, diag_range_##bytes);                                            \
  }                                                                                                                  \
  static int32_t matrix_set_diag_##bytes(tf_context *context, const tf_tensor *const *inputs,                        \
                                         tf_tensor *const *outputs, const int64_t *parameters) {                     \
    if (outputs[0]->data != inputs[0]->data) {                                                                       \
      memcpy(outputs[0]->data, inputs[0]->data, (size_t)outputs[0]->size * sizeof(type));                            \
    }                                                                                                                \
    diagonal_job job = {(const void *)parameters, inputs[1]->data, outputs[0]->data, NULL};                          \
    const int64_t work = job.shape->rows * job.shape->columns + 1;                                                   \
    context->parallel_for(context, job.shape->batch, GRAIN / work + 1, set_range_##bytes, &job);                     \
    return TF_OK;                                                                                                    \
  }                                                                                                                  \
  static void band_range_##bytes(void *argument, int64_t begin, int64_t end) {                                       \
    const band_job *job = argument;                                                                                  \
    for (; begin < end; begin++) {                                                                                   \
      const type *x = (const type *)(const void *)job->from + begin * job->columns;                                  \
      type *out = (type *)(void *)job->to + begin * job->columns;                                                    \
      const int64_t row = begin % job->rows;                                                                         \
      int64_t first = job->lower < 0 || row < job->lower ? 0 : row - job->lower;                                     \
      int64_t last = job->upper < 0 || job->columns - row - 1 < job->upper ? job->columns : row + job->upper + 1;    \
      first = least(first, job->columns);                                                                            \
      last = last < first ? first : last;                                                                            \
      fill_##bytes(out, first, NULL);                                                                                \
      if (out != x) memcpy(out + first, x + first, (size_t)(last - first) * sizeof(type));                           \
      fill_##bytes(out + last, job->columns - last, NULL);                                                           \
    }                                                                                                                \
  }                                                                                                                  \
  static int32_t matrix_band_part_##bytes(tf_context *context, const tf_tensor *const *inputs,                       \
                                          tf_tensor *const *outputs, const int64_t *parameters) {                    \
    return band(context, inputs, outputs, parameters, band_range_##bytes);                                           \
  }

/* Inputs of MatrixDiagPart and MatrixDiag: the tensor, and the padding where the op has one. */
static int32_t run(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                   const int64_t *parameters, tf_range *range) {
  diagonal_job job = {(const void *)parameters, inputs[0]->data, outputs[0]->data,
                      parameters[8] ? inputs[1]->data : NULL};
  const int64_t work = job.shape->rows * job.shape->columns + 1;
  context->parallel_for(context, job.shape->batch, GRAIN / work + 1, range, &job);
  return TF_OK;
}

typedef struct band_job {
  const char *from;
  char *to;
  int64_t rows, columns, lower, upper;
} band_job;

static int64_t integer(const tf_tensor *t) {
  return t->dtype == TF_INT64 ? *(const int64_t *)t->data : *(const int32_t *)t->data;
}

/* Parameters: all rows of all matrices, rows of one, columns. Reasons: 1 num_lower, 2 num_upper too large (value,
 * limit). */
static int32_t band(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                    const int64_t *parameters, tf_range *range) {
  band_job job = {inputs[0]->data,       outputs[0]->data,    parameters[1], parameters[2],
                  integer(inputs[1]), integer(inputs[2])};
  if (job.lower > job.rows) return tf_fail(context, TF_INVALID_ARGUMENT, 1, job.lower, job.rows, 0, 0);
  if (job.upper > job.columns) return tf_fail(context, TF_INVALID_ARGUMENT, 2, job.upper, job.columns, 0, 0);
  context->parallel_for(context, parameters[0], GRAIN / (job.columns + 1) + 1, range, &job);
  return TF_OK;
}

DIAGONALS(1, uint8_t)
DIAGONALS(2, uint16_t)
DIAGONALS(4, uint32_t)
DIAGONALS(8, uint64_t)
DIAGONALS(16, element16)

#define ENTRIES(bytes)                                               \
  TF_ENTRY(matrix_diag_part_##bytes), TF_ENTRY(matrix_diag_##bytes), \
  TF_ENTRY(matrix_set_diag_##bytes), TF_ENTRY(matrix_band_part_##bytes)
TF_TABLE(linalg_diagonal) = {ENTRIES(1), ENTRIES(2), ENTRIES(4), ENTRIES(8), ENTRIES(16), TF_END};
