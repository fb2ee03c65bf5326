/* ArgMax and ArgMin: the first index of the largest or smallest element along one axis. NaN counts as absent; a line of
 * nothing but NaN gives 0. float16 and bfloat16 are compared as float32. */
#include <math.h>

#include "common/table.h"
#include "reduce/elements.h"
#include "reduce/vectors.h"

enum { LINE_BLOCK = 2048, COLUMN_TILE = 256, WORK_GRAIN = 1 << 15 };

typedef struct argument_job {
  const void *input;
  char *output;
  int64_t rows, width, index_bytes;
} argument_job;

static void store_index(const argument_job *job, int64_t at, int64_t index) {
  if (job->index_bytes == 8) ((int64_t *)(void *)job->output)[at] = index;
  else if (job->index_bytes == 4) ((int32_t *)(void *)job->output)[at] = (int32_t)index;
  else ((int16_t *)(void *)job->output)[at] = (int16_t)index;
}

/* Whether x takes the place of the best so far, `beats` being > or <. That may be NaN where only NaNs came before. */
#define TAKES_FLOAT(x, best, beats) (((x)beats(best)) | (((best) != (best)) & ((x) == (x))))
#define TAKES_INTEGER(x, best, beats) ((x)beats(best))

/* name_best: the best of `count` values, or `worst` where none is better; NaN is not. This form is for dtypes that are
 * compared as another one. */
#define BEST_CONVERTED(name, ELEMENT, VALUE, worst, load, beats)                   \
  static VALUE name##_best(const ELEMENT *x, int64_t count) {                      \
    VALUE best = worst;                                                            \
    float lanes[16];                                                               \
    int64_t i = 0;                                                                 \
    for (int64_t j = 0; j < 16; j++) lanes[j] = worst;                             \
    for (; i + 16 <= count; i += 16) {                                             \
      for (int64_t j = 0; j < 16; j++) {                                           \
        const float value = load(x[i + j]);                                        \
        lanes[j] = value beats lanes[j] ? value : lanes[j];                        \
      }                                                                            \
    }                                                                              \
    for (int64_t j = 0; j < 16; j++) best = lanes[j] beats best ? lanes[j] : best; \
    for (; i < count; i++) best = load(x[i]) beats best ? load(x[i]) : best;       \
    return best;                                                                   \
  }

/* The same with vectors of the dtype itself. */
#define BEST(name, dtype, type, worst, beats, extreme)                                \
  static type name##_best(const type *x, int64_t count) {                             \
    enum { COUNT = VECTOR_BYTES / sizeof(type) };                                     \
    type best = worst, lanes[COUNT];                                                  \
    int64_t i = 0;                                                                    \
    dtype##_vector a = dtype##_spread(worst), b = a, c = a, d = a;                    \
    for (; i + 4 * COUNT <= count; i += 4 * COUNT) {                                  \
      a = extreme(a, dtype##_load(x + i));                                            \
      b = extreme(b, dtype##_load(x + i + COUNT));                                    \
      c = extreme(c, dtype##_load(x + i + 2 * COUNT));                                \
      d = extreme(d, dtype##_load(x + i + 3 * COUNT));                                \
    }                                                                                 \
    for (; i + COUNT <= count; i += COUNT) a = extreme(a, dtype##_load(x + i));       \
    a = extreme(extreme(a, b), extreme(c, d));                                        \
    memcpy(lanes, &a, sizeof lanes);                                                  \
    for (int64_t j = 0; j < COUNT; j++) best = lanes[j] beats best ? lanes[j] : best; \
    for (; i < count; i++) best = x[i] beats best ? x[i] : best;                      \
    return best;                                                                      \
  }

/* name_line: the axis is the last dimension. A block of the line is first searched for its best value, which
 * vectorises; only where that beats what came before is the block searched again, for the index. name_columns: one row
 * after the other against a tile of columns. */
#define ARGUMENT(name, ELEMENT, VALUE, INDEX, worst, load, beats, takes)                                          \
  static int64_t name##_find(const ELEMENT *x, int64_t count, VALUE value) {                                      \
    int64_t i = 0;                                                                                                \
    for (; i + 64 <= count; i += 64) {                                                                            \
      int hit = 0;                                                                                                \
      for (int64_t j = 0; j < 64; j++) hit |= load(x[i + j]) == value;                                            \
      if (hit) break;                                                                                             \
    }                                                                                                             \
    for (; i < count; i++) {                                                                                      \
      if (load(x[i]) == value) return i;                                                                          \
    }                                                                                                             \
    return 0;                                                                                                     \
  }                                                                                                               \
  static int64_t name##_line(const ELEMENT *x, int64_t length) {                                                  \
    VALUE best = worst;                                                                                           \
    int64_t found = -1;                                                                                           \
    for (int64_t begin = 0; begin < length; begin += LINE_BLOCK) {                                                \
      const int64_t count = length - begin < LINE_BLOCK ? length - begin : LINE_BLOCK;                            \
      const VALUE top = name##_best(x + begin, count);                                                            \
      if (top beats best) {                                                                                       \
        best = top;                                                                                               \
        found = begin;                                                                                            \
      }                                                                                                           \
    }                                                                                                             \
    if (found < 0) return name##_find(x, length, worst);                                                          \
    return found + name##_find(x + found, length - found, best);                                                  \
  }                                                                                                               \
  static void name##_columns(const argument_job *job, int64_t outer, int64_t column, int64_t width) {             \
    VALUE best[COLUMN_TILE];                                                                                      \
    INDEX found[COLUMN_TILE];                                                                                     \
    const ELEMENT *x = (const ELEMENT *)job->input + outer * job->rows * job->width + column;                     \
    for (int64_t i = 0; i < width; i++) {                                                                         \
      best[i] = load(x[i]);                                                                                       \
      found[i] = 0;                                                                                               \
    }                                                                                                             \
    for (int64_t r = 1; r < job->rows; r++) {                                                                     \
      const ELEMENT *row = x + r * job->width;                                                                    \
      for (int64_t i = 0; i < width; i++) {                                                                       \
        VALUE value = load(row[i]);                                                                               \
        const int better = takes(value, best[i], beats);                                                          \
        found[i] = better ? (INDEX)r : found[i];                                                                  \
        best[i] = better ? value : best[i];                                                                       \
      }                                                                                                           \
    }                                                                                                             \
    for (int64_t i = 0; i < width; i++) store_index(job, outer * job->width + column + i, (int64_t)found[i]);     \
  }                                                                                                               \
  static void name##_range(void *argument, int64_t begin, int64_t end) {                                          \
    const argument_job *job = argument;                                                                           \
    const int64_t tiles = (job->width + COLUMN_TILE - 1) / COLUMN_TILE;                                           \
    for (int64_t item = begin; item < end; item++) {                                                              \
      if (job->width == 1) {                                                                                      \
        store_index(job, item, name##_line((const ELEMENT *)job->input + item * job->rows, job->rows));           \
      } else {                                                                                                    \
        const int64_t column = item % tiles * COLUMN_TILE;                                                        \
        const int64_t width = job->width - column < COLUMN_TILE ? job->width - column : COLUMN_TILE;              \
        name##_columns(job, item / tiles, column, width);                                                         \
      }                                                                                                           \
    }                                                                                                             \
  }                                                                                                               \
  /* Parameters: sizes before the axis, of it (under 2^31 unless it is the last), after it; bytes of an index. */ \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,             \
                      const int64_t *parameters) {                                                                \
    argument_job job = {inputs[0]->data, outputs[0]->data, parameters[1], parameters[2], parameters[3]};          \
    const int64_t tiles = (job.width + COLUMN_TILE - 1) / COLUMN_TILE;                                            \
    const int64_t work = job.rows * (job.width < COLUMN_TILE ? job.width : COLUMN_TILE);                          \
    const int64_t grain = work > 0 && work < WORK_GRAIN ? WORK_GRAIN / work : 1;                                  \
    context->parallel_for(context, parameters[0] * tiles, grain, name##_range, &job);                             \
    return TF_OK;                                                                                                 \
  }

VECTOR_TYPE(int8, int8_t)
VECTOR_TYPE(int16, int16_t)
VECTOR_TYPE(uint16, uint16_t)
VECTOR_EXTREMES(float32, int32_t)
VECTOR_EXTREMES(float64, int64_t)

#define INTEGERS(name, type, INDEX, low, high)                                \
  VECTOR_EXTREMES(name, type)                                                 \
  BEST(argmax_##name, name, type, low, >, name##_max)                         \
  BEST(argmin_##name, name, type, high, <, name##_min)                        \
  ARGUMENT(argmax_##name, type, type, INDEX, low, AS_IT_IS, >, TAKES_INTEGER) \
  ARGUMENT(argmin_##name, type, type, INDEX, high, AS_IT_IS, <, TAKES_INTEGER)
#define FLOATS(name, ELEMENT, VALUE, INDEX, load)                                        \
  ARGUMENT(argmax_##name, ELEMENT, VALUE, INDEX, -(VALUE)INFINITY, load, >, TAKES_FLOAT) \
  ARGUMENT(argmin_##name, ELEMENT, VALUE, INDEX, (VALUE)INFINITY, load, <, TAKES_FLOAT)

/* The index is as wide as the value where that matters, so that both are selected with one mask. */
BEST(argmax_float32, float32, float, -INFINITY, >, float32_max)
BEST(argmin_float32, float32, float, INFINITY, <, float32_min)
FLOATS(float32, float, float, int32_t, AS_IT_IS)
BEST(argmax_float64, float64, double, -(double)INFINITY, >, float64_max)
BEST(argmin_float64, float64, double, (double)INFINITY, <, float64_min)
FLOATS(float64, double, double, int64_t, AS_IT_IS)
BEST_CONVERTED(argmax_float16, tf_float16, float, -INFINITY, FROM_FLOAT16, >)
BEST_CONVERTED(argmin_float16, tf_float16, float, INFINITY, FROM_FLOAT16, <)
FLOATS(float16, tf_float16, float, int32_t, FROM_FLOAT16)
BEST_CONVERTED(argmax_bfloat16, tf_bfloat16, float, -INFINITY, FROM_BFLOAT16, >)
BEST_CONVERTED(argmin_bfloat16, tf_bfloat16, float, INFINITY, FROM_BFLOAT16, <)
FLOATS(bfloat16, tf_bfloat16, float, int32_t, FROM_BFLOAT16)
INTEGERS(int8, int8_t, int32_t, INT8_MIN, INT8_MAX)
INTEGERS(int16, int16_t, int32_t, INT16_MIN, INT16_MAX)
INTEGERS(int32, int32_t, int32_t, INT32_MIN, INT32_MAX)
INTEGERS(int64, int64_t, int64_t, INT64_MIN, INT64_MAX)
INTEGERS(uint8, uint8_t, int32_t, 0, UINT8_MAX)
INTEGERS(uint16, uint16_t, int32_t, 0, UINT16_MAX)
INTEGERS(uint32, uint32_t, int32_t, 0, UINT32_MAX)
INTEGERS(uint64, uint64_t, int64_t, 0, UINT64_MAX)

#define ENTRIES(name) TF_ENTRY(argmax_##name), TF_ENTRY(argmin_##name)
TF_TABLE(reduce_arguments) = {
  ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), ENTRIES(int8),   ENTRIES(int16),
  ENTRIES(int32),   ENTRIES(int64),   ENTRIES(uint8),   ENTRIES(uint16),   ENTRIES(uint32), ENTRIES(uint64), TF_END,
};
