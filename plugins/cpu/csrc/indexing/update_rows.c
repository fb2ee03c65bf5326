/* Changing rows of a variable: ResourceScatter* and ResourceScatterNd*.
 *
 * Rows are combined in the order of the indices, so a row that is named twice changes twice; threads share the columns.
 * All indices are checked before anything is written. 16-bit floats are computed in float32 and rounded each time. */
#include <complex.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"
#include "indexing/index.h"

#define SERIAL_VALUES 16384 /* values worth a thread */

/* The parameters, in this order. An index tuple has `depth` indices and names a slice of `inner` elements (bytes where
 * rows are replaced). `scalar`: updates is one element, for all. `ignore`: tuples out of range change nothing. */
typedef struct rows_shape {
  int64_t count, inner, depth, scalar, ignore;
} rows_shape;

typedef struct rows_job {
  const rows_shape *shape;
  const int64_t *rows;
  const void *updates;
  void *target;
} rows_job;

/* Puts the slices' numbers into the workspace, -1 for those to leave out, and the variable's old value into the output.
 * Reason 1: tuple {0} has {1} in dimension {2}, not below {3}. */
static int32_t begin_update(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            const rows_shape *s, size_t element) {
  int64_t *rows = outputs[1]->data;
  for (int64_t i = 0; i < s->count; i++) {
    int64_t bad = 0;
    rows[i] = tuple_row(inputs[1], i, s->depth, outputs[0]->shape, &bad);
    if (rows[i] < 0 && !s->ignore) {
      const int64_t index = load_index(inputs[1], i * s->depth + bad);
      return tf_fail(context, TF_INVALID_ARGUMENT, 1, i, index, bad, outputs[0]->shape[bad]);
    }
  }
  if (inputs[0]->data != outputs[0]->data) {
    memcpy(outputs[0]->data, inputs[0]->data, (size_t)outputs[0]->size * element);
  }
  return TF_OK;
}

/* CHECK runs before anything is written and may return. */
#define UPDATE_ROWS(NAME, S, T, LOAD, STORE, CHECK, COMBINE)                                                          \
  static void columns_##NAME(void *argument, int64_t begin, int64_t end) {                                            \
    const rows_job *job = argument;                                                                                   \
    const int64_t inner = job->shape->inner;                                                                          \
    for (int64_t u = 0; u < job->shape->count; u++) {                                                                 \
      if (job->rows[u] < 0) continue;                                                                                 \
      const S *restrict updates = (const S *)job->updates + (job->shape->scalar ? 0 : u * inner);                     \
      S *restrict target = (S *)job->target + job->rows[u] * inner;                                                   \
      const T common = job->shape->scalar ? LOAD(updates[0]) : 0;                                                     \
      for (int64_t i = begin; i < end; i++) {                                                                         \
        const T a = LOAD(target[i]), b = job->shape->scalar ? common : LOAD(updates[i]);                              \
        target[i] = (S)STORE((T)(COMBINE));                                                                           \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                 \
                      const int64_t *parameters) {                                                                    \
    const rows_shape *s = (const rows_shape *)(const void *)parameters;                                               \
    const rows_job job = {s, outputs[1]->data, inputs[2]->data, outputs[0]->data};                                    \
    CHECK(S)                                                                                                          \
    if (begin_update(context, inputs, outputs, s, sizeof(S))) return TF_INVALID_ARGUMENT;                             \
    const int64_t grain = 1 + SERIAL_VALUES / (s->count + 1);                                                         \
    if (s->inner) context->parallel_for(context, s->inner, grain, columns_##NAME, (void *)&job);                      \
    return TF_OK;                                                                                                     \
  }

#define SAME(x) (x)
#define NO_CHECK(S)
/* Reason 2: update {0} is 0. */
#define CHECK_DIVISORS(S)                                                                                             \
  for (int64_t i = 0; i < inputs[2]->size; i++) {                                                                     \
    if (!((const S *)inputs[2]->data)[i]) return tf_fail(context, TF_INVALID_ARGUMENT, 2, i, 0, 0, 0);                \
  }

/* For each type: its name, storage and computing type, conversions. */
#define SIGNED(DO)                      \
  DO(int8, int8_t, int8_t, SAME, SAME)    \
  DO(int16, int16_t, int16_t, SAME, SAME) \
  DO(int32, int32_t, int32_t, SAME, SAME) \
  DO(int64, int64_t, int64_t, SAME, SAME)
#define UNSIGNED(DO)                       \
  DO(uint8, uint8_t, uint8_t, SAME, SAME)    \
  DO(uint16, uint16_t, uint16_t, SAME, SAME) \
  DO(uint32, uint32_t, uint32_t, SAME, SAME) \
  DO(uint64, uint64_t, uint64_t, SAME, SAME)
#define FLOATS(DO)                                                              \
  DO(float32, float, float, SAME, SAME)                                           \
  DO(float64, double, double, SAME, SAME)                                         \
  DO(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32) \
  DO(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)
#define COMPLEXES(DO)                                     \
  DO(complex64, float complex, float complex, SAME, SAME) \
  DO(complex128, double complex, double complex, SAME, SAME)

/* Signed integers wrap around; the unsigned type of the same size has the same bits. */
#define WRAP(a, OP, b) ((uint64_t)(a) OP (uint64_t)(b))
#define DEFINE_WRAPPING(NAME, S, T, LOAD, STORE)                            \
  UPDATE_ROWS(update_add_##NAME, S, T, LOAD, STORE, NO_CHECK, WRAP(a, +, b)) \
  UPDATE_ROWS(update_sub_##NAME, S, T, LOAD, STORE, NO_CHECK, WRAP(a, -, b)) \
  UPDATE_ROWS(update_mul_##NAME, S, T, LOAD, STORE, NO_CHECK, WRAP(a, *, b))
#define DEFINE_SIGNED_DIVISION(NAME, S, T, LOAD, STORE) \
  UPDATE_ROWS(update_div_##NAME, S, T, LOAD, STORE, CHECK_DIVISORS, b == -1 ? WRAP(0, -, a) : (uint64_t)(a / b))
#define DEFINE_DIVISION(NAME, S, T, LOAD, STORE) \
  UPDATE_ROWS(update_div_##NAME, S, T, LOAD, STORE, CHECK_DIVISORS, a / b)
#define DEFINE_ARITHMETIC(NAME, S, T, LOAD, STORE)                    \
  UPDATE_ROWS(update_add_##NAME, S, T, LOAD, STORE, NO_CHECK, a + b)   \
  UPDATE_ROWS(update_sub_##NAME, S, T, LOAD, STORE, NO_CHECK, a - b)   \
  UPDATE_ROWS(update_mul_##NAME, S, T, LOAD, STORE, NO_CHECK, (a) * b) \
  UPDATE_ROWS(update_div_##NAME, S, T, LOAD, STORE, NO_CHECK, a / b)
#define DEFINE_EXTREMES(NAME, S, T, LOAD, STORE)                               \
  UPDATE_ROWS(update_min_##NAME, S, T, LOAD, STORE, NO_CHECK, b < a ? b : a)   \
  UPDATE_ROWS(update_max_##NAME, S, T, LOAD, STORE, NO_CHECK, b > a ? b : a)

SIGNED(DEFINE_WRAPPING)
UNSIGNED(DEFINE_WRAPPING)
SIGNED(DEFINE_SIGNED_DIVISION)
UNSIGNED(DEFINE_DIVISION)
FLOATS(DEFINE_ARITHMETIC)
COMPLEXES(DEFINE_ARITHMETIC)
SIGNED(DEFINE_EXTREMES)
UNSIGNED(DEFINE_EXTREMES)
FLOATS(DEFINE_EXTREMES)
UPDATE_ROWS(update_add_bool, uint8_t, uint8_t, SAME, SAME, NO_CHECK, a | b)
UPDATE_ROWS(update_sub_bool, uint8_t, uint8_t, SAME, SAME, NO_CHECK, a ^ b)

/* Replacing slices of `inner` bytes; the size of an element follows the parameters. */
static int32_t update_rows(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                           const int64_t *parameters) {
  const rows_shape *s = (const rows_shape *)(const void *)parameters;
  const int64_t *rows = outputs[1]->data, element = parameters[sizeof(rows_shape) / sizeof(int64_t)];
  if (begin_update(context, inputs, outputs, s, (size_t)element)) return TF_INVALID_ARGUMENT;
  const char *updates = inputs[2]->data;
  char *output = outputs[0]->data;
  for (int64_t u = 0; u < s->count; u++) {
    if (rows[u] < 0) continue;
    char *row = output + rows[u] * s->inner;
    if (!s->scalar) memcpy(row, updates + u * s->inner, (size_t)s->inner);
    for (int64_t i = 0; s->scalar && i < s->inner; i += element) memcpy(row + i, updates, (size_t)element);
  }
  return TF_OK;
}

#define ENTER(NAME) TF_ENTRY(update_##NAME),
#define ENTER_ARITHMETIC(NAME, ...) ENTER(add_##NAME) ENTER(sub_##NAME) ENTER(mul_##NAME) ENTER(div_##NAME)
#define ENTER_EXTREMES(NAME, ...) ENTER(min_##NAME) ENTER(max_##NAME)

TF_TABLE(indexing_update_rows) = {
  SIGNED(ENTER_ARITHMETIC) UNSIGNED(ENTER_ARITHMETIC) FLOATS(ENTER_ARITHMETIC) COMPLEXES(ENTER_ARITHMETIC)
  SIGNED(ENTER_EXTREMES) UNSIGNED(ENTER_EXTREMES) FLOATS(ENTER_EXTREMES)
  ENTER(add_bool) ENTER(sub_bool) ENTER(rows) TF_END,
};
