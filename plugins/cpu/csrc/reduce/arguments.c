/* ArgMax and ArgMin: the first index of the largest or smallest element along one axis. NaN counts as absent; a line of
 * nothing but NaN gives 0. float16 and bfloat16 are compared as float32. */
#include "reduce/elements.h"
#include "common/table.h"

enum { LINE_BLOCK = 1024, COLUMN_TILE = 256, WORK_GRAIN = 1 << 15 };

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

/* Whether x takes the place of the best so far, `beats` being > or <. The best may be NaN where only NaNs came before. */
#define TAKES_FLOAT(x, best, beats) ((x) beats (best) || ((best) != (best) && (x) == (x)))
#define TAKES_INTEGER(x, best, beats) ((x) beats (best))

/* name_line: the axis is the last dimension. A block of the line is first searched for its best value, which vectorises;
 * only where that beats what came before is the block searched again, for the place.
 * name_columns: one row after the other against a tile of columns. */
#define ARGUMENT(name, ELEMENT, VALUE, INDEX, load, beats, takes)                                                        \
  static int64_t name##_line(const ELEMENT *x, int64_t length) {                                                         \
    VALUE best = load(x[0]);                                                                                             \
    int64_t found = 0;                                                                                                   \
    for (int64_t begin = 0; begin < length; begin += LINE_BLOCK) {                                                       \
      const int64_t count = length - begin < LINE_BLOCK ? length - begin : LINE_BLOCK;                                   \
      const ELEMENT *block = x + begin;                                                                                  \
      int64_t i = 0;                                                                                                     \
      VALUE lanes[64], top = best;                                                                                       \
      if (count >= 64) {                                                                                                 \
        for (int64_t j = 0; j < 64; j++) lanes[j] = load(block[j]);                                                      \
        for (i = 64; i + 64 <= count; i += 64) {                                                                         \
          for (int64_t j = 0; j < 64; j++) {                                                                             \
            VALUE value = load(block[i + j]);                                                                            \
            lanes[j] = takes(value, lanes[j], beats) ? value : lanes[j];                                                 \
          }                                                                                                              \
        }                                                                                                                \
        for (int64_t j = 0; j < 64; j++) top = takes(lanes[j], top, beats) ? lanes[j] : top;                             \
      }                                                                                                                  \
      for (; i < count; i++) {                                                                                           \
        VALUE value = load(block[i]);                                                                                    \
        top = takes(value, top, beats) ? value : top;                                                                    \
      }                                                                                                                  \
      if (takes(top, best, beats)) {                                                                                     \
        best = top;                                                                                                      \
        for (i = 0; load(block[i]) != top; i++) {                                                                        \
        }                                                                                                                \
        found = begin + i;                                                                                               \
      }                                                                                                                  \
    }                                                                                                                    \
    return found;                                                                                                        \
  }                                                                                                                      \
  static void name##_columns(const argument_job *job, int64_t outer, int64_t column, int64_t width) {                    \
    VALUE best[COLUMN_TILE];                                                                                             \
    INDEX found[COLUMN_TILE];                                                                                            \
    const ELEMENT *x = (const ELEMENT *)job->input + outer * job->rows * job->width + column;                            \
    for (int64_t i = 0; i < width; i++) {                                                                                \
      best[i] = load(x[i]);                                                                                              \
      found[i] = 0;                                                                                                      \
    }                                                                                                                    \
    for (int64_t r = 1; r < job->rows; r++) {                                                                            \
      const ELEMENT *row = x + r * job->width;                                                                           \
      for (int64_t i = 0; i < width; i++) {                                                                              \
        VALUE value = load(row[i]);                                                                                      \
        const int better = takes(value, best[i], beats);                                                                 \
        found[i] = better ? (INDEX)r : found[i];                                                                         \
        best[i] = better ? value : best[i];                                                                              \
      }                                                                                                                  \
    }                                                                                                                    \
    for (int64_t i = 0; i < width; i++) store_index(job, outer * job->width + column + i, (int64_t)found[i]);            \
  }                                                                                                                      \
  static void name##_range(void *argument, int64_t begin, int64_t end) {                                                 \
    const argument_job *job = argument;                                                                                  \
    const int64_t tiles = (job->width + COLUMN_TILE - 1) / COLUMN_TILE;                                                  \
    for (int64_t item = begin; item < end; item++) {                                                                     \
      if (job->width == 1) {                                                                                             \
        store_index(job, item, name##_line((const ELEMENT *)job->input + item * job->rows, job->rows));                  \
      } else {                                                                                                           \
        const int64_t column = item % tiles * COLUMN_TILE;                                                               \
        const int64_t width = job->width - column < COLUMN_TILE ? job->width - column : COLUMN_TILE;                     \
        name##_columns(job, item / tiles, column, width);                                                                \
      }                                                                                                                  \
    }                                                                                                                    \
  }                                                                                                                      \
  /* parameters: sizes before the axis, of the axis (under 2^31 unless it is the last), after it; bytes of an index. */  \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                    \
                      const int64_t *parameters) {                                                                       \
    argument_job job = {inputs[0]->data, outputs[0]->data, parameters[1], parameters[2], parameters[3]};                 \
    const int64_t tiles = (job.width + COLUMN_TILE - 1) / COLUMN_TILE;                                                   \
    const int64_t work = job.rows * (job.width < COLUMN_TILE ? job.width : COLUMN_TILE);                                 \
    const int64_t grain = work > 0 && work < WORK_GRAIN ? WORK_GRAIN / work : 1;                                         \
    context->parallel_for(context, parameters[0] * tiles, grain, name##_range, &job);                                    \
    return TF_OK;                                                                                                        \
  }

#define BOTH_ENDS(name, ELEMENT, VALUE, INDEX, load, takes)               \
  ARGUMENT(argmax_##name, ELEMENT, VALUE, INDEX, load, >, takes)          \
  ARGUMENT(argmin_##name, ELEMENT, VALUE, INDEX, load, <, takes)

/* The index is as wide as the value, so that both select with one mask. */
BOTH_ENDS(float32, float, float, int32_t, AS_IT_IS, TAKES_FLOAT)
BOTH_ENDS(float64, double, double, int64_t, AS_IT_IS, TAKES_FLOAT)
BOTH_ENDS(float16, tf_float16, float, int32_t, FROM_FLOAT16, TAKES_FLOAT)
BOTH_ENDS(bfloat16, tf_bfloat16, float, int32_t, FROM_BFLOAT16, TAKES_FLOAT)
BOTH_ENDS(int8, int8_t, int8_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(int16, int16_t, int16_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(int32, int32_t, int32_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(int64, int64_t, int64_t, int64_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(uint8, uint8_t, uint8_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(uint16, uint16_t, uint16_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(uint32, uint32_t, uint32_t, int32_t, AS_IT_IS, TAKES_INTEGER)
BOTH_ENDS(uint64, uint64_t, uint64_t, int64_t, AS_IT_IS, TAKES_INTEGER)

#define ENTRIES(name) TF_ENTRY(argmax_##name), TF_ENTRY(argmin_##name)
TF_TABLE(reduce_arguments) = {
  ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), ENTRIES(int8),   ENTRIES(int16),
  ENTRIES(int32),   ENTRIES(int64),   ENTRIES(uint8),   ENTRIES(uint16),   ENTRIES(uint32), ENTRIES(uint64), TF_END,
};
