/* CropAndResize and its gradients, of NHWC images. Positions are computed in float32, in TensorFlow's order. */
#include <math.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define SERIAL_VALUES 16384 /* values worth a thread */

/* The parameters, in this order: the images, the number of boxes, the size of crops, the method, and the value outside as
 * the bits of a double. */
typedef struct crop_shape {
  int64_t batch, height, width, channels, count, crop_height, crop_width, nearest, outside;
} crop_shape;

typedef struct crop_job {
  const crop_shape *shape;
  const void *image;
  const float *boxes, *grads;
  const int32_t *which;
  void *to, *sums; /* sums are apart from `to` for float16 */
} crop_job;

/* A position of one dimension: inside the image, it is `part` of the way from pixel `low` to pixel `high`. */
typedef struct coordinate {
  int64_t low, high;
  float part;
  int32_t inside;
} coordinate;

static inline coordinate find_coordinate(float first, float last, int64_t size, int64_t wanted, int64_t i) {
  float limit = (float)(size - 1), at;
  if (wanted > 1) {
    float step = (last - first) * limit / (float)(wanted - 1);
    at = first * limit + (float)i * step;
  } else {
    at = (float)(0.5 * (double)(first + last) * (double)(size - 1));
  }
  if (!(at >= 0 && at <= limit)) return (coordinate){0, 0, 0, 0};
  float floor = floorf(at);
  return (coordinate){(int64_t)floor, (int64_t)ceilf(at), at - floor, 1};
}

/* The pixel that a position is nearest to, the upper one half-way. */
static inline int64_t nearest(coordinate p) { return p.part >= 0.5f ? p.high : p.low; }

static inline coordinate row_of(const crop_job *job, int64_t box, int64_t i) {
  const float *b = job->boxes + 4 * box;
  return find_coordinate(b[0], b[2], job->shape->height, job->shape->crop_height, i);
}

static inline coordinate column_of(const crop_job *job, int64_t box, int64_t i) {
  const float *b = job->boxes + 4 * box;
  return find_coordinate(b[1], b[3], job->shape->width, job->shape->crop_width, i);
}

/* Reason 1: box {0} is not finite. Reason 2: box_ind[{0}] is {1}, which is not below {2}. */
static int32_t check(tf_context *context, const crop_job *job) {
  const crop_shape *s = job->shape;
  for (int64_t i = 0; i < 4 * s->count; i++) {
    if (!isfinite(job->boxes[i])) return tf_fail(context, TF_INVALID_ARGUMENT, 1, i / 4, 0, 0, 0);
  }
  for (int64_t i = 0; i < s->count; i++) {
    int32_t image = job->which[i];
    if (image < 0 || image >= s->batch) return tf_fail(context, TF_OUT_OF_RANGE, 2, i, image, s->batch, 0);
  }
  return TF_OK;
}

#define SAME(x) (x)

/* Units: rows of crops. */
#define CROP(NAME, S, LOAD)                                                                                        \
  static void crop_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const crop_job *job = argument;                                                                                \
    const crop_shape *s = job->shape;                                                                              \
    int64_t channels = s->channels, line = s->width * channels;                                                    \
    float outside = (float)tf_double(s->outside);                                                                  \
    for (int64_t row = begin; row < end; row++) {                                                                  \
      int64_t box = row / s->crop_height;                                                                          \
      coordinate y = row_of(job, box, row % s->crop_height);                                                       \
      const S *image = (const S *)job->image + job->which[box] * s->height * line;                                 \
      const S *upper = image + y.low * line, *lower = image + y.high * line, *near = image + nearest(y) * line;    \
      float *out = (float *)job->to + row * s->crop_width * channels;                                              \
      for (int64_t i = 0; i < s->crop_width; i++, out += channels) {                                               \
        coordinate x = column_of(job, box, i);                                                                     \
        if (!y.inside || !x.inside) {                                                                              \
          for (int64_t c = 0; c < channels; c++) out[c] = outside;                                                 \
        } else if (s->nearest) {                                                                                   \
          const S *pixel = near + nearest(x) * channels;                                                           \
          for (int64_t c = 0; c < channels; c++) out[c] = (float)LOAD(pixel[c]);                                   \
        } else {                                                                                                   \
          int64_t left = x.low * channels, right = x.high * channels;                                              \
          for (int64_t c = 0; c < channels; c++) {                                                                 \
            float a = (float)LOAD(upper[left + c]), b = (float)LOAD(upper[right + c]);                             \
            float p = (float)LOAD(lower[left + c]), q = (float)LOAD(lower[right + c]);                             \
            float top = a + (b - a) * x.part, bottom = p + (q - p) * x.part;                                       \
            out[c] = top + (bottom - top) * y.part;                                                                \
          }                                                                                                        \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static int32_t crop_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,       \
                             const int64_t *parameters) {                                                          \
    crop_job job = {(const crop_shape *)parameters, inputs[0]->data, inputs[1]->data, NULL, inputs[2]->data,       \
                    outputs[0]->data, NULL};                                                                       \
    int32_t code = check(context, &job);                                                                           \
    if (code || !outputs[0]->size) return code;                                                                    \
    int64_t rows = job.shape->count * job.shape->crop_height, grain = 1 + SERIAL_VALUES * rows / outputs[0]->size; \
    context->parallel_for(context, rows, grain, crop_rows_##NAME, &job);                                           \
    return TF_OK;                                                                                                  \
  }

/* Units: images, since the boxes of one image add to the same pixels. */
#define GRAD_IMAGE(NAME, S, T, STORE)                                                                        \
  static void grad_image_add_##NAME(const crop_job *job, int64_t box, T *sums) {                             \
    const crop_shape *s = job->shape;                                                                        \
    int64_t channels = s->channels, line = s->width * channels;                                              \
    const float *g = job->grads + box * s->crop_height * s->crop_width * channels;                           \
    for (int64_t j = 0; j < s->crop_height; j++) {                                                           \
      coordinate y = row_of(job, box, j);                                                                    \
      T *upper = sums + y.low * line, *lower = sums + y.high * line;                                         \
      for (int64_t i = 0; i < s->crop_width; i++, g += channels) {                                           \
        coordinate x = column_of(job, box, i);                                                               \
        if (!y.inside || !x.inside) continue;                                                                \
        if (s->nearest) {                                                                                    \
          T *pixel = sums + nearest(y) * line + nearest(x) * channels;                                       \
          for (int64_t c = 0; c < channels; c++) pixel[c] += (T)g[c];                                        \
          continue;                                                                                          \
        }                                                                                                    \
        int64_t left = x.low * channels, right = x.high * channels;                                          \
        for (int64_t c = 0; c < channels; c++) {                                                             \
          T down = (T)y.part, across = (T)x.part, top = (1 - down) * (T)g[c], bottom = down * (T)g[c];       \
          upper[left + c] += (1 - across) * top;                                                             \
          upper[right + c] += across * top;                                                                  \
          lower[left + c] += (1 - across) * bottom;                                                          \
          lower[right + c] += across * bottom;                                                               \
        }                                                                                                    \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  static void grad_image_images_##NAME(void *argument, int64_t begin, int64_t end) {                         \
    const crop_job *job = argument;                                                                          \
    const crop_shape *s = job->shape;                                                                        \
    int64_t size = s->height * s->width * s->channels;                                                       \
    for (int64_t image = begin; image < end; image++) {                                                      \
      T *sums = (T *)job->sums + image * size;                                                               \
      memset(sums, 0, (size_t)size * sizeof *sums);                                                          \
      for (int64_t box = 0; box < s->count; box++) {                                                         \
        if (job->which[box] == image) grad_image_add_##NAME(job, box, sums);                                 \
      }                                                                                                      \
      S *to = (S *)job->to + image * size;                                                                   \
      for (int64_t k = 0; job->sums != job->to && k < size; k++) to[k] = (S)STORE(sums[k]);                  \
    }                                                                                                        \
  }                                                                                                          \
  static int32_t crop_grad_image_##NAME(tf_context *context, const tf_tensor *const *inputs,                 \
                                        tf_tensor *const *outputs, const int64_t *parameters) {              \
    crop_job job = {(const crop_shape *)parameters, NULL, inputs[1]->data, inputs[0]->data, inputs[2]->data, \
                    outputs[0]->data, outputs[sizeof(S) == sizeof(T) ? 0 : 1]->data};                        \
    int32_t code = check(context, &job);                                                                     \
    if (code || !outputs[0]->size) return code;                                                              \
    context->parallel_for(context, job.shape->batch, 1, grad_image_images_##NAME, &job);                     \
    return TF_OK;                                                                                            \
  }

/* Adds the slopes of one pixel of a crop, towards the ends of its box, to `ends` [top, left, bottom, right]. */
static inline void add_ends(const crop_shape *s, int64_t j, int64_t i, float down, float across, float *ends) {
  float height = (float)(s->height - 1), width = (float)(s->width - 1);
  if (s->crop_height > 1) {
    float share = (float)j * (height / (float)(s->crop_height - 1));
    ends[0] += down * (height - share);
    ends[2] += down * share;
  } else {
    ends[0] += down * 0.5f * height;
    ends[2] += down * 0.5f * height;
  }
  if (s->crop_width > 1) {
    float share = (float)i * (width / (float)(s->crop_width - 1));
    ends[1] += across * (width - share);
    ends[3] += across * share;
  } else {
    ends[1] += across * 0.5f * width;
    ends[3] += across * 0.5f * width;
  }
}

/* Units: boxes. */
#define GRAD_BOXES(NAME, S, LOAD)                                                                      \
  static void grad_boxes_boxes_##NAME(void *argument, int64_t begin, int64_t end) {                    \
    const crop_job *job = argument;                                                                    \
    const crop_shape *s = job->shape;                                                                  \
    int64_t channels = s->channels, line = s->width * channels;                                        \
    for (int64_t box = begin; box < end; box++) {                                                      \
      const S *image = (const S *)job->image + job->which[box] * s->height * line;                     \
      const float *g = job->grads + box * s->crop_height * s->crop_width * channels;                   \
      float ends[4] = {0, 0, 0, 0};                                                                    \
      for (int64_t j = 0; j < s->crop_height; j++) {                                                   \
        coordinate y = row_of(job, box, j);                                                            \
        const S *upper = image + y.low * line, *lower = image + y.high * line;                         \
        for (int64_t i = 0; i < s->crop_width; i++, g += channels) {                                   \
          coordinate x = column_of(job, box, i);                                                       \
          if (!y.inside || !x.inside) continue;                                                        \
          int64_t left = x.low * channels, right = x.high * channels;                                  \
          float down = 0, across = 0;                                                                  \
          for (int64_t c = 0; c < channels; c++) {                                                     \
            float a = (float)LOAD(upper[left + c]), b = (float)LOAD(upper[right + c]);                 \
            float p = (float)LOAD(lower[left + c]), q = (float)LOAD(lower[right + c]);                 \
            down += ((1 - x.part) * (p - a) + x.part * (q - b)) * g[c];                                \
            across += ((1 - y.part) * (b - a) + y.part * (q - p)) * g[c];                              \
          }                                                                                            \
          add_ends(s, j, i, down, across, ends);                                                       \
        }                                                                                              \
      }                                                                                                \
      memcpy((float *)job->to + 4 * box, ends, sizeof ends);                                           \
    }                                                                                                  \
  }                                                                                                    \
  static int32_t crop_grad_boxes_##NAME(tf_context *context, const tf_tensor *const *inputs,           \
                                        tf_tensor *const *outputs, const int64_t *parameters) {        \
    crop_job job = {(const crop_shape *)parameters, inputs[1]->data, inputs[2]->data, inputs[0]->data, \
                    inputs[3]->data, outputs[0]->data, NULL};                                          \
    int32_t code = check(context, &job);                                                               \
    if (code || !outputs[0]->size) return code;                                                        \
    int64_t grain = 1 + SERIAL_VALUES * job.shape->count / (inputs[0]->size + 1);                      \
    context->parallel_for(context, job.shape->count, grain, grad_boxes_boxes_##NAME, &job);            \
    return TF_OK;                                                                                      \
  }

#define FOR_IMAGES(WITH)                              \
  WITH(int8, int8_t, SAME)                            \
  WITH(uint8, uint8_t, SAME)                          \
  WITH(int16, int16_t, SAME)                          \
  WITH(uint16, uint16_t, SAME)                        \
  WITH(int32, int32_t, SAME)                          \
  WITH(int64, int64_t, SAME)                          \
  WITH(float16, tf_float16, tf_float32_from_float16)  \
  WITH(float32, float, SAME)                          \
  WITH(float64, double, SAME)

FOR_IMAGES(CROP)
FOR_IMAGES(GRAD_BOXES)
GRAD_IMAGE(float16, tf_float16, float, tf_float16_from_float32)
GRAD_IMAGE(float32, float, float, SAME)
GRAD_IMAGE(float64, double, double, SAME)

TF_TABLE(image_crop) = {
#define ENTRY(NAME, S, LOAD) TF_ENTRY(crop_##NAME), TF_ENTRY(crop_grad_boxes_##NAME),
  FOR_IMAGES(ENTRY)
  TF_ENTRY(crop_grad_image_float16), TF_ENTRY(crop_grad_image_float32), TF_ENTRY(crop_grad_image_float64), TF_END,
};
