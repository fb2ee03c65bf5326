/* Cumsum, Cumprod and CumulativeLogsumexp along one axis, forwards or backwards, with or without the element itself.
 *
 * The tensor is outer x length x width. Where width is 1 the chain of dependent operations is cut by taking GROUP
 * elements at a time: their own running values first, then one combination each with what came before. float16 and
 * bfloat16 keep their running value in float32 and round at each output. */
#include <math.h>

#include "common/table.h"
#include "reduce/elements.h"

enum { GROUP = 4, TILE = 512, WORK_GRAIN = 1 << 14 };

typedef struct scan_job {
  const void *input;
  void *output;
  int64_t length, width, exclusive, reverse;
} scan_job;

#define SCAN(name, ELEMENT, ACCUMULATOR, identity, load, combine, store)                                            \
  static void name##_line(const ELEMENT *x, ELEMENT *out, int64_t length, int64_t exclusive, int64_t step) {        \
    ACCUMULATOR before = identity;                                                                                  \
    int64_t i = 0;                                                                                                  \
    for (; i + GROUP <= length; i += GROUP) {                                                                       \
      ACCUMULATOR a = load(x[i * step]), b = load(x[(i + 1) * step]), c = load(x[(i + 2) * step]),                  \
                  d = load(x[(i + 3) * step]);                                                                      \
      const ACCUMULATOR cd = combine(c, d);                                                                         \
      b = combine(a, b);                                                                                            \
      c = combine(b, c);                                                                                            \
      d = combine(b, cd);                                                                                           \
      a = combine(before, a);                                                                                       \
      b = combine(before, b);                                                                                       \
      c = combine(before, c);                                                                                       \
      d = combine(before, d);                                                                                       \
      out[i * step] = exclusive ? store(before) : store(a);                                                         \
      out[(i + 1) * step] = exclusive ? store(a) : store(b);                                                        \
      out[(i + 2) * step] = exclusive ? store(b) : store(c);                                                        \
      out[(i + 3) * step] = exclusive ? store(c) : store(d);                                                        \
      before = d;                                                                                                   \
    }                                                                                                               \
    for (; i < length; i++) {                                                                                       \
      const ACCUMULATOR now = combine(before, load(x[i * step]));                                                   \
      out[i * step] = exclusive ? store(before) : store(now);                                                       \
      before = now;                                                                                                 \
    }                                                                                                               \
  }                                                                                                                 \
  static void name##_columns(const scan_job *job, const ELEMENT *x, ELEMENT *out, int64_t width) {                  \
    ACCUMULATOR before[TILE];                                                                                       \
    for (int64_t j = 0; j < width; j++) before[j] = identity;                                                       \
    for (int64_t i = 0; i < job->length; i++) {                                                                     \
      const int64_t at = (job->reverse ? job->length - 1 - i : i) * job->width;                                     \
      for (int64_t j = 0; j < width; j++) {                                                                         \
        const ACCUMULATOR now = combine(before[j], load(x[at + j]));                                                \
        out[at + j] = job->exclusive ? store(before[j]) : store(now);                                               \
        before[j] = now;                                                                                            \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void name##_range(void *argument, int64_t begin, int64_t end) {                                            \
    const scan_job *job = argument;                                                                                 \
    const ELEMENT *x = job->input;                                                                                  \
    ELEMENT *out = job->output;                                                                                     \
    const int64_t tiles = (job->width + TILE - 1) / TILE;                                                           \
    for (int64_t item = begin; item < end; item++) {                                                                \
      const int64_t column = item % tiles * TILE, at = item / tiles * job->length * job->width + column;            \
      if (job->width > 1) {                                                                                         \
        name##_columns(job, x + at, out + at, job->width - column < TILE ? job->width - column : TILE);             \
      } else if (job->reverse) {                                                                                    \
        name##_line(x + at + job->length - 1, out + at + job->length - 1, job->length, job->exclusive, -1);         \
      } else {                                                                                                      \
        name##_line(x + at, out + at, job->length, job->exclusive, 1);                                              \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  /* parameters: sizes before, of and after the axis; exclusive; reverse. */                                        \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,               \
                      const int64_t *parameters) {                                                                  \
    scan_job job = {inputs[0]->data, outputs[0]->data, parameters[1], parameters[2], parameters[3], parameters[4]}; \
    const int64_t tiles = (job.width + TILE - 1) / TILE;                                                            \
    const int64_t work = job.length * (job.width < TILE ? job.width : TILE);                                        \
    const int64_t grain = work > 0 && work < WORK_GRAIN ? WORK_GRAIN / work : 1;                                    \
    context->parallel_for(context, parameters[0] * tiles, grain, name##_range, &job);                               \
    return TF_OK;                                                                                                   \
  }

#define WRAPPING(name, type, wide)                                   \
  static inline type add_##name(type a, type b) {                    \
    return (type)((wide)a + (wide)b);                                \
  }                                                                  \
  static inline type multiply_##name(type a, type b) {               \
    return (type)((wide)a * (wide)b);                                \
  }                                                                  \
  SCAN(cumsum_##name, type, type, 0, AS_IT_IS, add_##name, AS_IT_IS) \
  SCAN(cumprod_##name, type, type, 1, AS_IT_IS, multiply_##name, AS_IT_IS)
#define FLOATS(name, ELEMENT, ACCUMULATOR, load, store)          \
  SCAN(cumsum_##name, ELEMENT, ACCUMULATOR, 0, load, ADD, store) \
  SCAN(cumprod_##name, ELEMENT, ACCUMULATOR, 1, load, MULTIPLY, store)

/* log(exp(a) + exp(b)); -inf is the identity, and equal infinities stay what they are. */
static inline double log_add_exp(double a, double b) {
  const double high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
  if (high != high || low != low) return high + low;
  return high - low == 0 || isinf(high) ? (isinf(high) ? high : high + log(2.0)) : high + log1p(exp(low - high));
}

#define TO_FLOAT(x) ((float)(x))
#define TO_HALF(x) tf_float16_from_float32((float)(x))
#define TO_BRAIN(x) tf_bfloat16_from_float32((float)(x))

FLOATS(float32, float, float, AS_IT_IS, AS_IT_IS)
FLOATS(float64, double, double, AS_IT_IS, AS_IT_IS)
FLOATS(float16, tf_float16, float, FROM_FLOAT16, tf_float16_from_float32)
FLOATS(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, tf_bfloat16_from_float32)
WRAPPING(int8, uint8_t, unsigned)
WRAPPING(int16, uint16_t, unsigned)
WRAPPING(int32, uint32_t, uint32_t)
WRAPPING(int64, uint64_t, uint64_t)
SCAN(cumsum_complex64, tf_complex64, tf_complex64, ((tf_complex64){0, 0}), AS_IT_IS, tf_complex64_add, AS_IT_IS)
SCAN(cumsum_complex128, tf_complex128, tf_complex128, ((tf_complex128){0, 0}), AS_IT_IS, tf_complex128_add, AS_IT_IS)
SCAN(cumprod_complex64, tf_complex64, tf_complex64, ((tf_complex64){1, 0}), AS_IT_IS, tf_complex64_multiply, AS_IT_IS)
SCAN(cumprod_complex128, tf_complex128, tf_complex128, ((tf_complex128){1, 0}), AS_IT_IS, tf_complex128_multiply,
     AS_IT_IS)
SCAN(cumulative_logsumexp_float32, float, double, -INFINITY, AS_IT_IS, log_add_exp, TO_FLOAT)
SCAN(cumulative_logsumexp_float64, double, double, -INFINITY, AS_IT_IS, log_add_exp, AS_IT_IS)
SCAN(cumulative_logsumexp_float16, tf_float16, double, -INFINITY, FROM_FLOAT16, log_add_exp, TO_HALF)
SCAN(cumulative_logsumexp_bfloat16, tf_bfloat16, double, -INFINITY, FROM_BFLOAT16, log_add_exp, TO_BRAIN)

#define BOTH(name) TF_ENTRY(cumsum_##name), TF_ENTRY(cumprod_##name)
TF_TABLE(scan) = {
  BOTH(float32), BOTH(float64), BOTH(float16), BOTH(bfloat16), BOTH(int8), BOTH(int16), BOTH(int32), BOTH(int64),
  BOTH(complex64), BOTH(complex128), TF_ENTRY(cumulative_logsumexp_float32), TF_ENTRY(cumulative_logsumexp_float64),
  TF_ENTRY(cumulative_logsumexp_float16), TF_ENTRY(cumulative_logsumexp_bfloat16), TF_END,
};
