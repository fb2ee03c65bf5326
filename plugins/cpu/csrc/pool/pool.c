/* MaxPool and AvgPool. */
#include <float.h>
#include <math.h>

#include "common/half.h"
#include "common/table.h"
#include "pool/shape.h"

#define CHUNK 256           /* channels whose accumulators stay in the first-level cache */
#define SERIAL_VALUES 32768 /* values read that are worth a thread */

typedef struct pool_job {
  const pool_shape *shape;
  const void *input;
  void *output;
} pool_job;

/* POOL's START is the accumulator's first value, STEP takes `v` into the accumulator `a`, END makes the result of `a`
 * and the number of values `n`. There are two loops: NHWC without depth goes along the channels, all else value by
 * value. Units of both are rows of the output image (of one channel where channels come first). */
#define POOL(NAME, S, T, LOAD, STORE, START, STEP, END)                                               \
  static void rows_##NAME(void *argument, int64_t begin, int64_t end) {                               \
    const pool_job *job = argument;                                                                   \
    const pool_shape *s = job->shape;                                                                 \
    int64_t channels = s->channels;                                                                   \
    for (int64_t row = begin; row < end; row++) {                                                     \
      const S *image = (const S *)job->input + row / s->out_height * s->height * s->width * channels; \
      S *out = (S *)job->output + row * s->out_width * channels;                                      \
      for (int64_t x = 0; x < s->out_width; x++, out += channels) {                                   \
        window w = clip(s, row % s->out_height, x);                                                   \
        int64_t n = MAXIMUM(w.bottom - w.top, 0) * MAXIMUM(w.right - w.left, 0);                      \
        for (int64_t first = 0; first < channels; first += CHUNK) {                                   \
          T sums[CHUNK];                                                                              \
          int64_t count = MINIMUM(channels - first, CHUNK);                                           \
          for (int64_t c = 0; c < count; c++) sums[c] = START;                                        \
          for (int64_t i = w.top; i < w.bottom; i++) {                                                \
            for (int64_t j = w.left; j < w.right; j++) {                                              \
              const S *in = image + (i * s->width + j) * channels + first;                            \
              for (int64_t c = 0; c < count; c++) {                                                   \
                T v = (T)LOAD(in[c]), a = sums[c];                                                    \
                sums[c] = STEP;                                                                       \
              }                                                                                       \
            }                                                                                         \
          }                                                                                           \
          for (int64_t c = 0; c < count; c++) {                                                       \
            T a = sums[c];                                                                            \
            out[first + c] = (S)STORE(END);                                                           \
          }                                                                                           \
          (void)n;                                                                                    \
        }                                                                                             \
      }                                                                                               \
    }                                                                                                 \
  }                                                                                                   \
  static void values_##NAME(void *argument, int64_t begin, int64_t end) {                             \
    const pool_job *job = argument;                                                                   \
    const pool_shape *s = job->shape;                                                                 \
    int64_t blocks = s->channels / s->depth, planes = s->channels_first ? blocks : 1;                 \
    int64_t each = s->channels_first ? 1 : blocks, area = s->height * s->width;                       \
    int64_t step_x = s->channels_first ? 1 : s->channels, step_c = s->channels_first ? area : 1;      \
    for (int64_t row = begin; row < end; row++) {                                                     \
      int64_t plane = row / s->out_height;                                                            \
      const S *image = (const S *)job->input + plane / planes * area * s->channels;                   \
      S *out = (S *)job->output + row * s->out_width * each;                                          \
      for (int64_t x = 0; x < s->out_width * each; x++) {                                             \
        window w = clip(s, row % s->out_height, x / each);                                            \
        int64_t n = MAXIMUM(w.bottom - w.top, 0) * MAXIMUM(w.right - w.left, 0);                      \
        const S *from = image + (plane % planes + x % each) * s->depth * step_c;                      \
        T a = START;                                                                                  \
        for (int64_t i = w.top; i < w.bottom; i++) {                                                  \
          for (int64_t j = w.left; j < w.right; j++) {                                                \
            for (int64_t c = 0; c < s->depth; c++) {                                                  \
              T v = (T)LOAD(from[(i * s->width + j) * step_x + c * step_c]);                          \
              a = STEP;                                                                               \
            }                                                                                         \
          }                                                                                           \
        }                                                                                             \
        (void)n;                                                                                      \
        out[x] = (S)STORE(END);                                                                       \
      }                                                                                               \
    }                                                                                                 \
  }                                                                                                   \
  static int32_t NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    const pool_shape *s = (const pool_shape *)parameters;                                             \
    pool_job job = {s, inputs[0]->data, outputs[0]->data};                                            \
    if (!outputs[0]->size) return TF_OK;                                                              \
    int64_t rows = s->batch * s->out_height * (s->channels_first ? s->channels / s->depth : 1);       \
    int64_t cost = outputs[0]->size / rows * s->kernel_height * s->kernel_width * s->depth;           \
    tf_range *body = s->channels_first || s->depth > 1 ? values_##NAME : rows_##NAME;                 \
    context->parallel_for(context, rows, 1 + SERIAL_VALUES / (cost + 1), body, &job);                 \
    return TF_OK;                                                                                     \
  }

/* A comparison with NaN is false, so NaN never replaces a number. */
#define LARGER v > a ? v : a
#define SAME(x) (x)
#define MAX_POOL(NAME, T, LOWEST) POOL(max_pool_##NAME, T, T, SAME, SAME, LOWEST, LARGER, a)
#define FLOAT16_LOWEST -65504.0f
#define BFLOAT16_LOWEST -0x1.fep127f

MAX_POOL(int8, int8_t, INT8_MIN)
MAX_POOL(int16, int16_t, INT16_MIN)
MAX_POOL(int32, int32_t, INT32_MIN)
MAX_POOL(int64, int64_t, INT64_MIN)
MAX_POOL(uint8, uint8_t, 0)
MAX_POOL(uint16, uint16_t, 0)
MAX_POOL(float32, float, -FLT_MAX)
MAX_POOL(float64, double, -DBL_MAX)
#define FLOAT16 tf_float16, float, tf_float32_from_float16, tf_float16_from_float32
#define BFLOAT16 tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32
#define POOL_AS(...) POOL(__VA_ARGS__)
POOL_AS(max_pool_float16, FLOAT16, FLOAT16_LOWEST, LARGER, a)
POOL_AS(max_pool_bfloat16, BFLOAT16, BFLOAT16_LOWEST, LARGER, a)

/* Only positions inside the image count; a window wholly outside gives zero. */
#define MEAN a / (T_COUNT)MAXIMUM(n, 1)
#define T_COUNT float
POOL(avg_pool_float32, float, float, SAME, SAME, 0, a + v, MEAN)
POOL_AS(avg_pool_float16, FLOAT16, 0, a + v, MEAN)
POOL_AS(avg_pool_bfloat16, BFLOAT16, 0, a + v, MEAN)
#undef T_COUNT
#define T_COUNT double
POOL(avg_pool_float64, double, double, SAME, SAME, 0, a + v, MEAN)

TF_TABLE(pool) = {
  TF_ENTRY(max_pool_int8), TF_ENTRY(max_pool_int16), TF_ENTRY(max_pool_int32), TF_ENTRY(max_pool_int64),
  TF_ENTRY(max_pool_uint8), TF_ENTRY(max_pool_uint16), TF_ENTRY(max_pool_float16), TF_ENTRY(max_pool_bfloat16),
  TF_ENTRY(max_pool_float32), TF_ENTRY(max_pool_float64), TF_ENTRY(avg_pool_float16), TF_ENTRY(avg_pool_bfloat16),
  TF_ENTRY(avg_pool_float32), TF_ENTRY(avg_pool_float64), TF_END,
};
