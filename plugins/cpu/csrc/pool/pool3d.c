/* Pooling over three dimensions and its gradients, of tensors with channels last; where they come first, each
 * channel is a volume with one.
 *
 * Gradients are gathered: each row of the result adds up what the windows over it have for it, so that rows are
 * independent and sums of 16-bit floats are rounded once. */
#include <float.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define CHUNK 128           /* channels whose maxima or sums stay in the first-level cache */
#define SERIAL_VALUES 16384 /* values read that are worth a thread */

/* The parameters, in this order; each of three values is for planes, rows and columns. */
typedef struct volume_shape {
  int64_t batch, channels, size[3], out[3], kernel[3], stride[3], pad[3];
} volume_shape;

typedef struct volume_job {
  const volume_shape *shape;
  const void *input, *output, *gradient;
  void *result;
} volume_job;

/* The part of a window, or of the windows over a position, along each dimension. */
typedef struct span {
  int64_t first[3], end[3];
} span;

static inline span window_at(const volume_shape *s, const int64_t *at) {
  span w;
  for (int d = 0; d < 3; d++) {
    int64_t first = at[d] * s->stride[d] - s->pad[d], end = first + s->kernel[d];
    w.first[d] = first < 0 ? 0 : first;
    w.end[d] = MINIMUM(end, s->size[d]);
  }
  return w;
}

static inline span windows_over(const volume_shape *s, const int64_t *at) {
  span w;
  for (int d = 0; d < 3; d++) {
    int64_t position = at[d] + s->pad[d];
    w.first[d] = position < s->kernel[d] ? 0 : (position - s->kernel[d]) / s->stride[d] + 1;
    w.end[d] = MINIMUM(position / s->stride[d] + 1, s->out[d]);
  }
  return w;
}

static inline int64_t span_size(const span *w) {
  return (w->end[0] - w->first[0]) * (w->end[1] - w->first[1]) * (w->end[2] - w->first[2]);
}

/* Position `row` of the rows of a volume of this size, as plane and row; returns the volume's number. */
static inline int64_t row_at(int64_t row, const int64_t *size, int64_t *at) {
  at[1] = row % size[1];
  at[0] = row / size[1] % size[0];
  return row / size[1] / size[0];
}

static inline int64_t pixel_of(int64_t volume, const int64_t *size, const int64_t *at) {
  return ((volume * size[0] + at[0]) * size[1] + at[1]) * size[2] + at[2];
}

#define EACH(SPAN, AT)                                        \
  for (AT[0] = SPAN.first[0]; AT[0] < SPAN.end[0]; AT[0]++)   \
    for (AT[1] = SPAN.first[1]; AT[1] < SPAN.end[1]; AT[1]++) \
      for (AT[2] = SPAN.first[2]; AT[2] < SPAN.end[2]; AT[2]++)

#define EACH_BACKWARD(SPAN, AT)                                    \
  for (AT[0] = SPAN.end[0] - 1; AT[0] >= SPAN.first[0]; AT[0]--)   \
    for (AT[1] = SPAN.end[1] - 1; AT[1] >= SPAN.first[1]; AT[1]--) \
      for (AT[2] = SPAN.end[2] - 1; AT[2] >= SPAN.first[2]; AT[2]--)

/* Rows of `DOMAIN` (size or out), each pixel a result of what lies in OVER(pixel), whose sizes are INNER. BODY is
 * done for each of those, `from` being where its values of the channels begin; it works on `count` values of `a`. */
#define ROWS(NAME, S, T, STORE, DOMAIN, OVER, INNER, FROM, SETUP, START, BODY, END)  \
  static void NAME##_rows(void *argument, int64_t begin, int64_t end) {              \
    const volume_job *job = argument;                                                \
    const volume_shape *s = job->shape;                                              \
    for (int64_t row = begin; row < end; row++) {                                    \
      int64_t at[3], inner[3], volume = row_at(row, s->DOMAIN, at);                  \
      for (at[2] = 0; at[2] < s->DOMAIN[2]; at[2]++) {                               \
        span around = OVER(s, at);                                                   \
        int64_t position = pixel_of(volume, s->DOMAIN, at) * s->channels;            \
        for (int64_t chunk = 0; chunk < s->channels; chunk += CHUNK) {               \
          T a[CHUNK];                                                                \
          int64_t count = MINIMUM(s->channels - chunk, CHUNK);                       \
          S *result = (S *)job->result + position + chunk;                           \
          for (int64_t c = 0; c < count; c++) a[c] = START;                          \
          EACH(around, inner) {                                                      \
            int64_t start = pixel_of(volume, s->INNER, inner) * s->channels + chunk; \
            const S *from = (const S *)job->FROM + start;                            \
            SETUP;                                                                   \
            for (int64_t c = 0; c < count; c++) BODY;                                \
          }                                                                          \
          for (int64_t c = 0; c < count; c++) result[c] = (S)STORE(END);             \
        }                                                                            \
      }                                                                              \
    }                                                                                \
  }

static int32_t run(tf_context *context, const volume_job *job, const int64_t *domain, tf_range *body) {
  const volume_shape *s = job->shape;
  int64_t cost = domain[2] * s->channels * s->kernel[0] * s->kernel[1] * s->kernel[2];
  volume_job copy = *job;
  context->parallel_for(context, s->batch * domain[0] * domain[1], 1 + SERIAL_VALUES / (cost + 1), body, &copy);
  return TF_OK;
}

#define ENTRY(NAME, ...)                                                                              \
  static int32_t NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    const volume_shape *s = (const volume_shape *)parameters;                                         \
    if (!outputs[0]->size) return TF_OK;                                                              \
    volume_job job = {.shape = s, .result = outputs[0]->data, __VA_ARGS__};                           \
    return NAME##_passes(context, &job);                                                              \
  }

#define NOTHING (void)from

/* A comparison with NaN is false, so NaN never replaces a number. */
#define MAXIMA(NAME, S, LOAD, STORE, LOWEST)                                                                      \
  ROWS(max_pool3d_##NAME, S, float, STORE, out, window_at, size, input, NOTHING, LOWEST,                          \
       a[c] = LOAD(from[c]) > a[c] ? LOAD(from[c]) : a[c], a[c])                                                  \
  static int32_t max_pool3d_##NAME##_passes(tf_context *context, const volume_job *job) {                         \
    return run(context, job, job->shape->out, max_pool3d_##NAME##_rows);                                          \
  }                                                                                                               \
  ENTRY(max_pool3d_##NAME, .input = inputs[0]->data)                                                              \
  ROWS(max_pool3d_grad_##NAME, S, float, STORE, size, windows_over, out, gradient, /* all maxima of a window */   \
       const S *x = (const S *)job->input + position + chunk; const S *y = (const S *)job->output + start, 0,     \
       a[c] += LOAD(x[c]) == LOAD(y[c]) ? LOAD(from[c]) : 0, a[c])                                                \
  static int32_t max_pool3d_grad_##NAME##_passes(tf_context *context, const volume_job *job) {                    \
    return run(context, job, job->shape->size, max_pool3d_grad_##NAME##_rows);                                    \
  }                                                                                                               \
  ENTRY(max_pool3d_grad_##NAME, .input = inputs[0]->data, .output = inputs[1]->data, .gradient = inputs[2]->data) \
  static void max_pool3d_grad_grad_##NAME##_rows(void *argument, int64_t begin, int64_t end) {                    \
    const volume_job *job = argument;                                                                             \
    const volume_shape *s = job->shape;                                                                           \
    for (int64_t row = begin; row < end; row++) {                                                                 \
      int64_t at[3], inner[3], volume = row_at(row, s->out, at);                                                  \
      for (at[2] = 0; at[2] < s->out[2]; at[2]++) {                                                               \
        span around = window_at(s, at);                                                                           \
        int64_t position = pixel_of(volume, s->out, at) * s->channels;                                            \
        const S *y = (const S *)job->output + position;                                                           \
        S *result = (S *)job->result + position;                                                                  \
        memset(result, 0, (size_t)s->channels * sizeof *result);                                                  \
        EACH_BACKWARD(around, inner) { /* so that the first equal one stays */                                    \
          int64_t start = pixel_of(volume, s->size, inner) * s->channels;                                         \
          const S *from = (const S *)job->input + start, *gradient = (const S *)job->gradient + start;            \
          for (int64_t c = 0; c < s->channels; c++) {                                                             \
            result[c] = LOAD(from[c]) == LOAD(y[c]) ? gradient[c] : result[c];                                    \
          }                                                                                                       \
        }                                                                                                         \
      }                                                                                                           \
    }                                                                                                             \
  }                                                                                                               \
  static int32_t max_pool3d_grad_grad_##NAME##_passes(tf_context *context, const volume_job *job) {               \
    return run(context, job, job->shape->out, max_pool3d_grad_grad_##NAME##_rows);                                \
  }                                                                                                               \
  ENTRY(max_pool3d_grad_grad_##NAME, .input = inputs[0]->data, .output = inputs[1]->data,                         \
        .gradient = inputs[2]->data)

#define MEANS(NAME, S, T, LOAD, STORE)                                                                         \
  ROWS(avg_pool3d_##NAME, S, T, STORE, out, window_at, size, input, NOTHING, 0, a[c] += LOAD(from[c]),         \
       a[c] / (T)span_size(&around))                                                                           \
  static int32_t avg_pool3d_##NAME##_passes(tf_context *context, const volume_job *job) {                      \
    return run(context, job, job->shape->out, avg_pool3d_##NAME##_rows);                                       \
  }                                                                                                            \
  ENTRY(avg_pool3d_##NAME, .input = inputs[0]->data)                                                           \
  ROWS(avg_pool3d_grad_##NAME, S, T, STORE, size, windows_over, out, gradient,                                 \
       span whole = window_at(s, inner); T share = 1 / (T)span_size(&whole), 0, a[c] += LOAD(from[c]) * share, \
       a[c])                                                                                                   \
  static int32_t avg_pool3d_grad_##NAME##_passes(tf_context *context, const volume_job *job) {                 \
    return run(context, job, job->shape->size, avg_pool3d_grad_##NAME##_rows);                                 \
  }                                                                                                            \
  ENTRY(avg_pool3d_grad_##NAME, .gradient = inputs[0]->data)

#define SAME(x) (x)
MAXIMA(float32, float, SAME, SAME, -FLT_MAX)
MAXIMA(float16, tf_float16, tf_float32_from_float16, tf_float16_from_float32, -65504.0f)
MAXIMA(bfloat16, tf_bfloat16, tf_float32_from_bfloat16, tf_bfloat16_from_float32, -0x1.fep127f)
MEANS(float32, float, float, SAME, SAME)
MEANS(float64, double, double, SAME, SAME)
MEANS(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
MEANS(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

#define MAX_ENTRIES(NAME) \
  TF_ENTRY(max_pool3d_##NAME), TF_ENTRY(max_pool3d_grad_##NAME), TF_ENTRY(max_pool3d_grad_grad_##NAME)
#define MEAN_ENTRIES(NAME) TF_ENTRY(avg_pool3d_##NAME), TF_ENTRY(avg_pool3d_grad_##NAME)
TF_TABLE(pool_volumes) = {
  MAX_ENTRIES(float32), MAX_ENTRIES(float16), MAX_ENTRIES(bfloat16), MEAN_ENTRIES(float32),
  MEAN_ENTRIES(float64), MEAN_ENTRIES(float16), MEAN_ENTRIES(bfloat16), TF_END,
};
