/* ResizeBilinear, ResizeNearestNeighbor and their gradients, of NHWC images. Positions are computed in float32. */
#include <math.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define SERIAL_VALUES 16384 /* values worth a thread */

/* The parameters, in this order: the image, its resized height and width, and how positions are counted. */
typedef struct resize_shape {
  int64_t batch, height, width, channels, out_height, out_width, align_corners, half_pixel_centers;
} resize_shape;

/* A position between two pixels of one dimension: `before` and `after` it, and its part of the way. */
typedef struct coordinate {
  int64_t before, after;
  float part;
} coordinate;

static inline float scale_of(const resize_shape *s, int64_t size, int64_t resized) {
  if (s->align_corners && resized > 1) return (float)(size - 1) / (float)(resized - 1);
  return (float)size / (float)resized;
}

static inline coordinate find_coordinate(const resize_shape *s, int64_t i, int64_t size, float scale) {
  float at = s->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
  float floor = floorf(at);
  int64_t before = floor > 0 ? (int64_t)floor : 0, after = (int64_t)ceilf(at);
  if (after > size - 1) after = size - 1;
  if (after < 0) after = 0;
  return (coordinate){before < after ? before : after, after, at - floor};
}

static inline int64_t find_nearest(const resize_shape *s, int64_t i, int64_t size, float scale) {
  float at = s->half_pixel_centers ? ((float)i + 0.5f) * scale : (float)i * scale;
  int64_t chosen = (int64_t)(s->align_corners ? roundf(at) : floorf(at));
  return chosen < size - 1 ? chosen : size - 1;
}

typedef struct resize_job {
  const resize_shape *shape;
  const void *from;
  void *to, *sums; /* sums are apart from `to` for 16-bit floats */
  int64_t item;    /* bytes of an element */
} resize_job;

#define BILINEAR(NAME, S, LOAD)                                                                                     \
  static void bilinear_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    const resize_job *job = argument;                                                                               \
    const resize_shape *s = job->shape;                                                                             \
    int64_t channels = s->channels, line = s->width * channels;                                                     \
    float down = scale_of(s, s->height, s->out_height), across = scale_of(s, s->width, s->out_width);               \
    for (int64_t row = begin; row < end; row++) {                                                                   \
      coordinate y = find_coordinate(s, row % s->out_height, s->height, down);                                      \
      const S *image = (const S *)job->from + row / s->out_height * s->height * line;                               \
      const S *upper = image + y.before * line, *lower = image + y.after * line;                                    \
      float *restrict out = (float *)job->to + row * s->out_width * channels;                                       \
      for (int64_t i = 0; i < s->out_width; i++, out += channels) {                                                 \
        coordinate x = find_coordinate(s, i, s->width, across);                                                     \
        int64_t left = x.before * channels, right = x.after * channels;                                             \
        for (int64_t c = 0; c < channels; c++) {                                                                    \
          float a = (float)LOAD(upper[left + c]), b = (float)LOAD(upper[right + c]);                                \
          float p = (float)LOAD(lower[left + c]), q = (float)LOAD(lower[right + c]);                                \
          float top = a + (b - a) * x.part, bottom = p + (q - p) * x.part;                                          \
          out[c] = top + (bottom - top) * y.part;                                                                   \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static int32_t resize_bilinear_##NAME(tf_context *context, const tf_tensor *const *inputs,                        \
                                        tf_tensor *const *outputs, const int64_t *parameters) {                     \
    resize_job job = {(const resize_shape *)parameters, inputs[0]->data, outputs[0]->data, NULL, sizeof(S)};        \
    if (!outputs[0]->size) return TF_OK;                                                                            \
    int64_t rows = job.shape->batch * job.shape->out_height, grain = 1 + SERIAL_VALUES / (outputs[0]->size / rows); \
    context->parallel_for(context, rows, grain, bilinear_rows_##NAME, &job);                                        \
    return TF_OK;                                                                                                   \
  }

/* Units are images: neighbouring positions add to the same pixels. */
#define SCATTER(NAME, S, T, STORE)                                                                                 \
  static void finish_##NAME(const resize_job *job, int64_t image) {                                                \
    int64_t size = job->shape->height * job->shape->width * job->shape->channels;                                  \
    const T *sums = (const T *)job->sums + image * size;                                                           \
    S *to = (S *)job->to + image * size;                                                                           \
    for (int64_t k = 0; job->sums != job->to && k < size; k++) to[k] = (S)STORE(sums[k]);                          \
  }                                                                                                                \
  static int32_t scatter_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                const int64_t *parameters, tf_range *body) {                                       \
    if (!outputs[0]->size) return TF_OK;                                                                           \
    resize_job job = {(const resize_shape *)parameters, inputs[0]->data, outputs[0]->data,                         \
                      outputs[sizeof(S) == sizeof(T) ? 0 : 1]->data, sizeof(S)};                                   \
    context->parallel_for(context, job.shape->batch, 1 + SERIAL_VALUES / (inputs[0]->size / job.shape->batch + 1), \
                          body, &job);                                                                             \
    return TF_OK;                                                                                                  \
  }

#define BILINEAR_GRAD(NAME, S, T)                                                                     \
  static void bilinear_grad_images_##NAME(void *argument, int64_t begin, int64_t end) {               \
    const resize_job *job = argument;                                                                 \
    const resize_shape *s = job->shape;                                                               \
    int64_t channels = s->channels, line = s->width * channels;                                       \
    float down = scale_of(s, s->height, s->out_height), across = scale_of(s, s->width, s->out_width); \
    for (int64_t image = begin; image < end; image++) {                                               \
      T *sums = (T *)job->sums + image * s->height * line;                                            \
      const float *g = (const float *)job->from + image * s->out_height * s->out_width * channels;    \
      memset(sums, 0, (size_t)(s->height * line) * sizeof *sums);                                     \
      for (int64_t j = 0; j < s->out_height; j++) {                                                   \
        coordinate y = find_coordinate(s, j, s->height, down);                                        \
        T *upper = sums + y.before * line, *lower = sums + y.after * line;                            \
        for (int64_t i = 0; i < s->out_width; i++, g += channels) {                                   \
          coordinate x = find_coordinate(s, i, s->width, across);                                     \
          int64_t left = x.before * channels, right = x.after * channels;                             \
          for (int64_t c = 0; c < channels; c++) {                                                    \
            upper[left + c] += (T)(g[c] * (1 - y.part) * (1 - x.part));                               \
            upper[right + c] += (T)(g[c] * (1 - y.part) * x.part);                                    \
            lower[left + c] += (T)(g[c] * y.part * (1 - x.part));                                     \
            lower[right + c] += (T)(g[c] * y.part * x.part);                                          \
          }                                                                                           \
        }                                                                                             \
      }                                                                                               \
      finish_##NAME(job, image);                                                                      \
    }                                                                                                 \
  }                                                                                                   \
  static int32_t resize_bilinear_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,     \
                                             tf_tensor *const *outputs, const int64_t *parameters) {  \
    return scatter_##NAME(context, inputs, outputs, parameters, bilinear_grad_images_##NAME);         \
  }

#define NEAREST_GRAD(NAME, S, T, LOAD)                                                                \
  static void nearest_grad_images_##NAME(void *argument, int64_t begin, int64_t end) {                \
    const resize_job *job = argument;                                                                 \
    const resize_shape *s = job->shape;                                                               \
    int64_t channels = s->channels, line = s->width * channels;                                       \
    float down = scale_of(s, s->height, s->out_height), across = scale_of(s, s->width, s->out_width); \
    for (int64_t image = begin; image < end; image++) {                                               \
      T *sums = (T *)job->sums + image * s->height * line;                                            \
      const S *g = (const S *)job->from + image * s->out_height * s->out_width * channels;            \
      memset(sums, 0, (size_t)(s->height * line) * sizeof *sums);                                     \
      for (int64_t j = 0; j < s->out_height; j++) {                                                   \
        T *row = sums + find_nearest(s, j, s->height, down) * line;                                   \
        for (int64_t i = 0; i < s->out_width; i++, g += channels) {                                   \
          T *restrict pixel = row + find_nearest(s, i, s->width, across) * channels;                  \
          for (int64_t c = 0; c < channels; c++) pixel[c] = (T)(pixel[c] + LOAD(g[c]));               \
        }                                                                                             \
      }                                                                                               \
      finish_##NAME(job, image);                                                                      \
    }                                                                                                 \
  }                                                                                                   \
  static int32_t resize_nearest_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,      \
                                            tf_tensor *const *outputs, const int64_t *parameters) {   \
    return scatter_##NAME(context, inputs, outputs, parameters, nearest_grad_images_##NAME);          \
  }

static void nearest_rows(void *argument, int64_t begin, int64_t end) {
  const resize_job *job = argument;
  const resize_shape *s = job->shape;
  int64_t pixel = s->channels * job->item;
  float down = scale_of(s, s->height, s->out_height), across = scale_of(s, s->width, s->out_width);
  for (int64_t row = begin; row < end; row++) {
    int64_t y = row / s->out_height * s->height + find_nearest(s, row % s->out_height, s->height, down);
    const char *from = (const char *)job->from + y * s->width * pixel;
    char *to = (char *)job->to + row * s->out_width * pixel;
    for (int64_t i = 0; i < s->out_width; i++, to += pixel) {
      memcpy(to, from + find_nearest(s, i, s->width, across) * pixel, (size_t)pixel);
    }
  }
}

/* parameters: a resize_shape, then the bytes of an element. */
static int32_t resize_nearest(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const int64_t *parameters) {
  resize_job job = {(const resize_shape *)parameters, inputs[0]->data, outputs[0]->data, NULL,
                    parameters[sizeof(resize_shape) / sizeof(int64_t)]};
  if (!outputs[0]->size) return TF_OK;
  int64_t rows = job.shape->batch * job.shape->out_height, grain = 1 + SERIAL_VALUES / (outputs[0]->size / rows);
  context->parallel_for(context, rows, grain, nearest_rows, &job);
  return TF_OK;
}

#define SAME(x) (x)
BILINEAR(int8, int8_t, SAME)
BILINEAR(uint8, uint8_t, SAME)
BILINEAR(int16, int16_t, SAME)
BILINEAR(uint16, uint16_t, SAME)
BILINEAR(int32, int32_t, SAME)
BILINEAR(int64, int64_t, SAME)
BILINEAR(float32, float, SAME)
BILINEAR(float64, double, SAME)
BILINEAR(float16, tf_float16, tf_float32_from_float16)
BILINEAR(bfloat16, tf_bfloat16, tf_float32_from_bfloat16)

/* Sums of integers wrap, which unsigned arithmetic does. */
SCATTER(uint8, uint8_t, uint8_t, SAME)
SCATTER(int32, uint32_t, uint32_t, SAME)
SCATTER(float32, float, float, SAME)
SCATTER(float64, double, double, SAME)
SCATTER(float16, tf_float16, float, tf_float16_from_float32)
SCATTER(bfloat16, tf_bfloat16, float, tf_bfloat16_from_float32)
BILINEAR_GRAD(float32, float, float)
BILINEAR_GRAD(float64, double, double)
BILINEAR_GRAD(float16, tf_float16, float)
BILINEAR_GRAD(bfloat16, tf_bfloat16, float)
NEAREST_GRAD(uint8, uint8_t, uint8_t, SAME)
NEAREST_GRAD(int32, uint32_t, uint32_t, SAME)
NEAREST_GRAD(float32, float, float, SAME)
NEAREST_GRAD(float64, double, double, SAME)
NEAREST_GRAD(float16, tf_float16, float, tf_float32_from_float16)
NEAREST_GRAD(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16)

TF_TABLE(image_resize) = {
  TF_ENTRY(resize_bilinear_int8), TF_ENTRY(resize_bilinear_uint8), TF_ENTRY(resize_bilinear_int16),
  TF_ENTRY(resize_bilinear_uint16), TF_ENTRY(resize_bilinear_int32), TF_ENTRY(resize_bilinear_int64),
  TF_ENTRY(resize_bilinear_float32), TF_ENTRY(resize_bilinear_float64), TF_ENTRY(resize_bilinear_float16),
  TF_ENTRY(resize_bilinear_bfloat16), TF_ENTRY(resize_bilinear_grad_float32), TF_ENTRY(resize_bilinear_grad_float64),
  TF_ENTRY(resize_bilinear_grad_float16), TF_ENTRY(resize_bilinear_grad_bfloat16), TF_ENTRY(resize_nearest),
  TF_ENTRY(resize_nearest_grad_uint8), TF_ENTRY(resize_nearest_grad_int32), TF_ENTRY(resize_nearest_grad_float32),
  TF_ENTRY(resize_nearest_grad_float64), TF_ENTRY(resize_nearest_grad_float16), TF_ENTRY(resize_nearest_grad_bfloat16),
  TF_END,
};
