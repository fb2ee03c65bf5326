/* Dilation2D and its gradients, of NHWC images. */
#include <float.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define CHUNK 64            /* channels that are worked on together */
#define SERIAL_VALUES 16384 /* values read that are worth a thread */

/* The parameters, in this order. */
typedef struct dilation_shape {
  int64_t batch, height, width, channels, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_y, stride_x, rate_y, rate_x, pad_top, pad_left;
} dilation_shape;

typedef struct dilation_job {
  const dilation_shape *shape;
  const void *input, *filter, *gradient;
  void *result, *sums; /* sums are apart for 16-bit floats */
} dilation_job;

/* The sums at one output are taken over the taps inside the image, in their order; a comparison with NaN is false.
 * The first sum counts only if it is above LOWEST, as the result's start; `position` and `tap` are those of the
 * largest, and at the start those of the first tap inside. */
#define DILATION(NAME, S, T, A, LOAD, STORE, LOWEST)                                                                \
  static void find_##NAME(const dilation_job *job, int64_t image, int64_t y, int64_t x, int64_t channel,            \
                          int64_t count, T *best, int64_t *position, int64_t *tap) {                                \
    const dilation_shape *s = job->shape;                                                                           \
    int64_t top = y * s->stride_y - s->pad_top, left = x * s->stride_x - s->pad_left, first = 1;                    \
    for (int64_t c = 0; c < count; c++) best[c] = LOWEST, position[c] = tap[c] = 0;                                 \
    for (int64_t i = 0; i < s->kernel_height; i++) {                                                                \
      int64_t in_y = top + i * s->rate_y;                                                                           \
      if (in_y < 0 || in_y >= s->height) continue;                                                                  \
      for (int64_t j = 0; j < s->kernel_width; j++) {                                                               \
        int64_t in_x = left + j * s->rate_x;                                                                        \
        if (in_x < 0 || in_x >= s->width) continue;                                                                 \
        int64_t pixel = (image * s->height + in_y) * s->width + in_x, number = i * s->kernel_width + j;             \
        const S *from = (const S *)job->input + pixel * s->channels + channel;                                      \
        const S *filter = (const S *)job->filter + number * s->channels + channel;                                  \
        for (int64_t c = 0; c < count; c++) {                                                                       \
          S rounded = (S)STORE(LOAD(from[c]) + LOAD(filter[c]));                                                    \
          T sum = (T)LOAD(rounded);                                                                                 \
          if (first) position[c] = pixel, tap[c] = number;                                                          \
          if (sum > best[c]) best[c] = sum, position[c] = pixel, tap[c] = number;                                   \
        }                                                                                                           \
        first = 0;                                                                                                  \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void dilation_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    const dilation_job *job = argument;                                                                             \
    const dilation_shape *s = job->shape;                                                                           \
    T best[CHUNK];                                                                                                  \
    int64_t position[CHUNK], tap[CHUNK];                                                                            \
    for (int64_t row = begin; row < end; row++) {                                                                   \
      for (int64_t x = 0; x < s->out_width; x++) {                                                                  \
        S *out = (S *)job->result + (row * s->out_width + x) * s->channels;                                         \
        for (int64_t c = 0; c < s->channels; c += CHUNK) {                                                          \
          int64_t count = MINIMUM(s->channels - c, CHUNK);                                                          \
          find_##NAME(job, row / s->out_height, row % s->out_height, x, c, count, best, position, tap);             \
          for (int64_t k = 0; k < count; k++) out[c + k] = (S)STORE(best[k]);                                       \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  /* Units are chunks of channels, so that neighbouring outputs, which add to the same sums, stay on one thread. */ \
  static void add_##NAME(const dilation_job *job, int64_t unit, int by_filter) {                                    \
    const dilation_shape *s = job->shape;                                                                           \
    T best[CHUNK];                                                                                                  \
    int64_t position[CHUNK], tap[CHUNK], channel = unit * CHUNK, count = MINIMUM(s->channels - channel, CHUNK);     \
    int64_t rows = by_filter ? s->kernel_height * s->kernel_width : s->batch * s->height * s->width;                \
    A *sums = (A *)job->sums;                                                                                       \
    for (int64_t r = 0; r < rows; r++) memset(sums + r * s->channels + channel, 0, (size_t)count * sizeof *sums);   \
    for (int64_t row = 0; row < s->batch * s->out_height; row++) {                                                  \
      for (int64_t x = 0; x < s->out_width; x++) {                                                                  \
        const S *gradient = (const S *)job->gradient + (row * s->out_width + x) * s->channels + channel;            \
        find_##NAME(job, row / s->out_height, row % s->out_height, x, channel, count, best, position, tap);         \
        for (int64_t k = 0; k < count; k++) {                                                                       \
          A *sum = sums + (by_filter ? tap[k] : position[k]) * s->channels + channel + k;                           \
          *sum = (A)(*sum + (A)LOAD(gradient[k]));                                                                  \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    for (int64_t r = 0; job->sums != job->result && r < rows; r++) {                                                \
      S *to = (S *)job->result + r * s->channels + channel;                                                         \
      for (int64_t k = 0; k < count; k++) to[k] = (S)STORE(sums[r * s->channels + channel + k]);                    \
    }                                                                                                               \
  }                                                                                                                 \
  static void add_to_input_##NAME(void *argument, int64_t begin, int64_t end) {                                     \
    for (int64_t unit = begin; unit < end; unit++) add_##NAME(argument, unit, 0);                                   \
  }                                                                                                                 \
  static void add_to_filter_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    for (int64_t unit = begin; unit < end; unit++) add_##NAME(argument, unit, 1);                                   \
  }                                                                                                                 \
  static int32_t dilation_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                 const int64_t *parameters) {                                                       \
    const dilation_shape *s = (const dilation_shape *)parameters;                                                   \
    dilation_job job = {s, inputs[0]->data, inputs[1]->data, NULL, outputs[0]->data, NULL};                         \
    if (!outputs[0]->size) return TF_OK;                                                                            \
    int64_t cost = s->out_width * s->channels * s->kernel_height * s->kernel_width;                                 \
    context->parallel_for(context, s->batch * s->out_height, 1 + SERIAL_VALUES / cost, dilation_rows_##NAME, &job); \
    return TF_OK;                                                                                                   \
  }                                                                                                                 \
  static int32_t dilation_gradient_##NAME(tf_context *context, const tf_tensor *const *inputs,                      \
                                          tf_tensor *const *outputs, const int64_t *parameters, tf_range *body) {   \
    if (!outputs[0]->size) return TF_OK;                                                                            \
    dilation_job job = {(const dilation_shape *)parameters, inputs[0]->data, inputs[1]->data, inputs[2]->data,      \
                        outputs[0]->data, outputs[sizeof(S) == sizeof(A) ? 0 : 1]->data};                           \
    context->parallel_for(context, (job.shape->channels + CHUNK - 1) / CHUNK, 1, body, &job);                       \
    return TF_OK;                                                                                                   \
  }                                                                                                                 \
  static int32_t dilation_input_##NAME(tf_context *context, const tf_tensor *const *inputs,                         \
                                       tf_tensor *const *outputs, const int64_t *parameters) {                      \
    return dilation_gradient_##NAME(context, inputs, outputs, parameters, add_to_input_##NAME);                     \
  }                                                                                                                 \
  static int32_t dilation_filter_##NAME(tf_context *context, const tf_tensor *const *inputs,                        \
                                        tf_tensor *const *outputs, const int64_t *parameters) {                     \
    return dilation_gradient_##NAME(context, inputs, outputs, parameters, add_to_filter_##NAME);                    \
  }
#define SAME(x) (x)
/* Elements are read as unsigned, so that sums wrap, and compared as what they are. */
#define INTEGERS(BITS)                                                                \
  DILATION(uint##BITS, uint##BITS##_t, uint##BITS##_t, uint##BITS##_t, SAME, SAME, 0) \
  DILATION(int##BITS, uint##BITS##_t, int##BITS##_t, uint##BITS##_t, SAME, SAME, INT##BITS##_MIN)
INTEGERS(8)
INTEGERS(16)
INTEGERS(32)
INTEGERS(64)
DILATION(float32, float, float, float, SAME, SAME, -FLT_MAX)
DILATION(float64, double, double, double, SAME, SAME, -DBL_MAX)
DILATION(float16, tf_float16, float, float, tf_float32_from_float16, tf_float16_from_float32, -65504.0f)
DILATION(bfloat16, tf_bfloat16, float, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32, -0x1.fep127f)

#define ENTRIES(NAME) TF_ENTRY(dilation_##NAME), TF_ENTRY(dilation_input_##NAME), TF_ENTRY(dilation_filter_##NAME)
TF_TABLE(image_dilation) = {
  ENTRIES(uint8), ENTRIES(int8), ENTRIES(uint16), ENTRIES(int16), ENTRIES(uint32), ENTRIES(int32), ENTRIES(uint64),
  ENTRIES(int64), ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), TF_END,
};
