/* Combining rows of updates with the rows of a target: ScatterNd, TensorScatter* and the segment reductions.
 *
 * Every kernel finds the target row of each update first. Threads share the columns, not the updates, so each element
 * is combined in the order of the updates whatever the number of threads. 16-bit floats are combined in float32 and
 * rounded at the end. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"
#include "indexing/index.h"

#define SERIAL_VALUES 16384 /* values worth a thread */

/* What the rows come from, and what the target holds at first. */
enum kind { SCATTER_ND, TENSOR_SCATTER, UNSORTED_SEGMENTS, SORTED_SEGMENTS };

/* The parameters, in this order. The workspace holds the updates' rows, and after `target_at` bytes the float32 target
 * of 16-bit types. Sorted segment ids follow the parameters. */
typedef struct accumulate_shape {
  int64_t kind, count, inner, depth, ignore, target_rows, mean, target_at;
  int64_t ids[];
} accumulate_shape;

typedef struct accumulate_job {
  const accumulate_shape *shape;
  const int64_t *rows;
  const void *values;
  void *target;
} accumulate_job;

/* Reason 1: tuple {0} has {1} in dimension {2}, not below {3}. Reason 2: segment id {0} at {1} is not below {2}. */
static int32_t find_rows(tf_context *context, const accumulate_shape *s, const tf_tensor *indices,
                         const tf_tensor *target, int64_t *rows) {
  for (int64_t i = 0; i < s->count; i++) {
    int64_t bad = 0;
    if (s->kind == UNSORTED_SEGMENTS) {
      rows[i] = load_index(indices, i);
      if (rows[i] >= s->target_rows) return tf_fail(context, TF_INVALID_ARGUMENT, 2, rows[i], i, s->target_rows, 0);
      continue;
    }
    rows[i] = tuple_row(indices, i, s->depth, target->shape, &bad);
    if (rows[i] < 0 && !s->ignore) {
      int64_t index = load_index(indices, i * s->depth + bad);
      return tf_fail(context, TF_INVALID_ARGUMENT, 1, i, index, bad, target->shape[bad]);
    }
  }
  return TF_OK;
}

/* Where each kind has the updates and the indices among the inputs. */
static const tf_tensor *values_of(const accumulate_shape *s, const tf_tensor *const *inputs) {
  return inputs[s->kind == SCATTER_ND ? 1 : s->kind == TENSOR_SCATTER ? 2 : 0];
}

static const tf_tensor *indices_of(const accumulate_shape *s, const tf_tensor *const *inputs) {
  return inputs[s->kind == SCATTER_ND ? 0 : 1];
}

/* START is what a segment begins with, EMPTY the result of a sorted segment without rows. */
#define ACCUMULATE(NAME, S, T, LOAD, STORE, START, EMPTY, COMBINE)                                                    \
  static void columns_##NAME(void *argument, int64_t begin, int64_t end) {                                            \
    const accumulate_job *job = argument;                                                                             \
    int64_t inner = job->shape->inner;                                                                                \
    for (int64_t u = 0; u < job->shape->count; u++) {                                                                 \
      if (job->rows[u] < 0) continue;                                                                                 \
      const S *restrict values = (const S *)job->values + u * inner;                                                  \
      T *restrict target = (T *)job->target + job->rows[u] * inner;                                                   \
      for (int64_t i = begin; i < end; i++) {                                                                         \
        T a = target[i], b = LOAD(values[i]);                                                                         \
        target[i] = (T)(COMBINE);                                                                                     \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                 \
                      const int64_t *parameters) {                                                                    \
    const accumulate_shape *s = (const accumulate_shape *)(const void *)parameters;                                   \
    int64_t size = outputs[0]->size, *found = s->kind == SORTED_SEGMENTS ? NULL : outputs[1]->data;                   \
    const int64_t *rows = found ? found : s->ids;                                                                     \
    S *output = outputs[0]->data;                                                                                     \
    T *target = sizeof(S) == sizeof(T) ? outputs[0]->data : (void *)((char *)outputs[1]->data + s->target_at);        \
    if (found && find_rows(context, s, indices_of(s, inputs), outputs[0], found)) return TF_INVALID_ARGUMENT;         \
    if (s->kind == TENSOR_SCATTER) {                                                                                  \
      const S *tensor = inputs[0]->data;                                                                              \
      for (int64_t i = 0; (const void *)tensor != target && i < size; i++) target[i] = LOAD(tensor[i]);               \
    } else {                                                                                                          \
      for (int64_t i = 0; i < size; i++) target[i] = s->kind == SCATTER_ND ? 0 : START;                               \
    }                                                                                                                 \
    accumulate_job job = {s, rows, values_of(s, inputs)->data, target};                                               \
    if (s->inner) context->parallel_for(context, s->inner, 1 + SERIAL_VALUES / (s->count + 1), columns_##NAME, &job); \
    for (int64_t row = 0, u = 0; s->kind == SORTED_SEGMENTS && row < s->target_rows; row++) {                         \
      int64_t first = u;                                                                                              \
      while (u < s->count && rows[u] == row) u++;                                                                     \
      int64_t n = u - first;                                                                                          \
      for (int64_t i = row * s->inner; i < (row + 1) * s->inner; i++) {                                               \
        if (u == first) target[i] = EMPTY;                                                                            \
        else if (s->mean) target[i] = (T)(target[i] / n);                                                             \
      }                                                                                                               \
    }                                                                                                                 \
    for (int64_t i = 0; (void *)target != output && i < size; i++) output[i] = (S)STORE(target[i]);                   \
    return TF_OK;                                                                                                     \
  }

#define SAME(x) (x)

/* For each type: its name, storage and computing type, conversions, lowest and highest finite value. */
#define INTEGERS(DO)                                            \
  DO(int8, int8_t, int8_t, SAME, SAME, INT8_MIN, INT8_MAX)      \
  DO(int16, int16_t, int16_t, SAME, SAME, INT16_MIN, INT16_MAX) \
  DO(int32, int32_t, int32_t, SAME, SAME, INT32_MIN, INT32_MAX) \
  DO(int64, int64_t, int64_t, SAME, SAME, INT64_MIN, INT64_MAX) \
  DO(uint8, uint8_t, uint8_t, SAME, SAME, 0, UINT8_MAX)         \
  DO(uint16, uint16_t, uint16_t, SAME, SAME, 0, UINT16_MAX)     \
  DO(uint32, uint32_t, uint32_t, SAME, SAME, 0, UINT32_MAX)     \
  DO(uint64, uint64_t, uint64_t, SAME, SAME, 0, UINT64_MAX)
#define FLOATS(DO)                                                                                      \
  DO(float32, float, float, SAME, SAME, -FLT_MAX, FLT_MAX)                                              \
  DO(float64, double, double, SAME, SAME, -DBL_MAX, DBL_MAX)                                            \
  DO(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32, -65504.0f, 65504.0f) \
  DO(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32, -0x1.fep127f, 0x1.fep127f)
#define COMPLEXES(DO)                                           \
  DO(complex64, float complex, float complex, SAME, SAME, 0, 0) \
  DO(complex128, double complex, double complex, SAME, SAME, 0, 0)

/* Sums and products of signed integers wrap around; the unsigned type of the same size has the same bits. */
#define WRAP(a, OP, b) ((uint64_t)(a) OP (uint64_t)(b))
#define DEFINE_INTEGER(NAME, S, T, LOAD, STORE, LOWEST, HIGHEST)            \
  ACCUMULATE(accumulate_add_##NAME, S, T, LOAD, STORE, 0, 0, WRAP(a, +, b)) \
  ACCUMULATE(accumulate_sub_##NAME, S, T, LOAD, STORE, 0, 0, WRAP(a, -, b)) \
  ACCUMULATE(accumulate_mul_##NAME, S, T, LOAD, STORE, 1, 1, WRAP(a, *, b))
#define DEFINE_ARITHMETIC(NAME, S, T, LOAD, STORE, LOWEST, HIGHEST) \
  ACCUMULATE(accumulate_add_##NAME, S, T, LOAD, STORE, 0, 0, a + b) \
  ACCUMULATE(accumulate_sub_##NAME, S, T, LOAD, STORE, 0, 0, a - b) \
  ACCUMULATE(accumulate_mul_##NAME, S, T, LOAD, STORE, 1, 1, a *b)
#define DEFINE_EXTREMES(NAME, S, T, LOAD, STORE, LOWEST, HIGHEST)                 \
  ACCUMULATE(accumulate_min_##NAME, S, T, LOAD, STORE, HIGHEST, 0, b < a ? b : a) \
  ACCUMULATE(accumulate_max_##NAME, S, T, LOAD, STORE, LOWEST, 0, b > a ? b : a)
/* A NaN stays the extreme of what has one: nothing is less or greater, and it takes the place of any number. Sorted
 * segments, whose result is another one where they are empty, begin with infinities, which are the extreme of themselves
 * alone; unsorted ones begin with what TensorFlow gives for those without rows. */
#define FIRST(EXTREME, FINITE) (s->kind == SORTED_SEGMENTS ? (EXTREME) : (FINITE))
#define DEFINE_FLOAT_EXTREMES(NAME, S, T, LOAD, STORE, LOWEST, HIGHEST)                                               \
  ACCUMULATE(accumulate_min_##NAME, S, T, LOAD, STORE, FIRST((T)INFINITY, HIGHEST), 0, b < a || isnan(b) ? b : a)     \
  ACCUMULATE(accumulate_max_##NAME, S, T, LOAD, STORE, FIRST(-(T)INFINITY, LOWEST), 0, b > a || isnan(b) ? b : a)

INTEGERS(DEFINE_INTEGER)
FLOATS(DEFINE_ARITHMETIC)
COMPLEXES(DEFINE_ARITHMETIC)
INTEGERS(DEFINE_EXTREMES)
FLOATS(DEFINE_FLOAT_EXTREMES)
ACCUMULATE(accumulate_add_bool, uint8_t, uint8_t, SAME, SAME, 0, 0, a | b)

/* TensorScatterUpdate: slices of `inner` bytes. */
static int32_t scatter_update(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const int64_t *parameters) {
  const accumulate_shape *s = (const accumulate_shape *)(const void *)parameters;
  int64_t *rows = outputs[1]->data;
  if (find_rows(context, s, inputs[1], outputs[0], rows)) return TF_INVALID_ARGUMENT;
  const char *tensor = inputs[0]->data, *updates = inputs[2]->data;
  char *output = outputs[0]->data;
  if (tensor != output) memcpy(output, tensor, (size_t)(s->target_rows * s->inner));
  for (int64_t u = 0; u < s->count; u++) {
    if (rows[u] >= 0) memcpy(output + rows[u] * s->inner, updates + u * s->inner, (size_t)s->inner);
  }
  return TF_OK;
}

#define ENTER(NAME) TF_ENTRY(accumulate_##NAME),
#define ENTER_ARITHMETIC(NAME, ...) ENTER(add_##NAME) ENTER(sub_##NAME) ENTER(mul_##NAME)
#define ENTER_EXTREMES(NAME, ...) ENTER(min_##NAME) ENTER(max_##NAME)

TF_TABLE(indexing_accumulate) = {
  INTEGERS(ENTER_ARITHMETIC) FLOATS(ENTER_ARITHMETIC) COMPLEXES(ENTER_ARITHMETIC) INTEGERS(ENTER_EXTREMES)
  FLOATS(ENTER_EXTREMES) ENTER(add_bool) TF_ENTRY(scatter_update), TF_END,
};
