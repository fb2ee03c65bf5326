/* Kernels that make a filter's gradient of a padded image. */
#ifndef TIMBERFRAME_CPU_CONV_PADDED_H
#define TIMBERFRAME_CPU_CONV_PADDED_H

#include <string.h>

#include "conv/layout.h"
#include "conv/shape.h"

/* The parameters, in this order. height and width are those of the padded image, which holds every window, and `step` the
 * elements from one to the next; `copied` says whether it must be made (at conv.input_at), else the input is one as it
 * is. The pixels are added up in `parts`, whose sums are at conv.packed_at, block by block: those at `places` neighbouring
 * places of `images` images. conv.filter_at has room for the gradient in the computing type. */
typedef struct correlation {
  conv_shape conv;
  int64_t height, width, copied, step, parts, images, places;
} correlation;

typedef struct padding_job {
  const correlation *shape;
  const void *from;
  void *to;
} padding_job;

/* pad_<type> makes rows of the padded image. */
#define PADDING(NAME, S, T, LOAD)                                                                           \
  static inline void pad_##NAME(void *argument, int64_t begin, int64_t end) {                               \
    const padding_job *job = argument;                                                                      \
    const conv_shape *s = &job->shape->conv;                                                                \
    int64_t channels = s->groups * s->in_channels, width = job->shape->width, height = job->shape->height;  \
    int64_t left = s->pad_left < width ? s->pad_left : width, room = width - left;                          \
    int64_t inside = s->width < room ? s->width : room;                                                     \
    for (int64_t row = begin; row < end; row++) {                                                           \
      int64_t image = row / height, y = row % height - s->pad_top;                                          \
      T *to = (T *)job->to + image * job->shape->step + row % height * width * channels;                    \
      if (y < 0 || y >= s->height) {                                                                        \
        memset(to, 0, (size_t)(width * channels) * sizeof(T));                                              \
        continue;                                                                                           \
      }                                                                                                     \
      memset(to, 0, (size_t)(left * channels) * sizeof(T));                                                 \
      memset(to + (left + inside) * channels, 0, (size_t)((width - left - inside) * channels) * sizeof(T)); \
      to += left * channels;                                                                                \
      if (!s->channels_first) {                                                                             \
        const S *from = (const S *)job->from + (image * s->height + y) * s->width * channels;               \
        for (int64_t i = 0; i < inside * channels; i++) to[i] = LOAD(from[i]);                              \
        continue;                                                                                           \
      }                                                                                                     \
      for (int64_t c = 0; c < channels; c++) {                                                              \
        const S *from = (const S *)job->from + ((image * channels + c) * s->height + y) * s->width;         \
        for (int64_t x = 0; x < inside; x++) to[x * channels + c] = LOAD(from[x]);                          \
      }                                                                                                     \
    }                                                                                                       \
  }
#define SAME(x) (x)

PADDING(float, float, float, SAME)
PADDING(double, double, double, SAME)
PADDING(float16, tf_float16, float, tf_float32_from_float16)
PADDING(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16)

#undef SAME
#undef PADDING

/* The kernel KERNEL##_##NAME of an image and out_backprop, which RUN##_##COMPUTE computes. */
#define FILTER_KERNEL(KERNEL, RUN, NAME, T, COMPUTE)                                                             \
  static int32_t KERNEL##_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                 const int64_t *parameters) {                                                    \
    const correlation *shape = (const correlation *)parameters;                                                  \
    const conv_shape *s = &shape->conv;                                                                          \
    if (!outputs[0]->size) return TF_OK;                                                                         \
    image_shape from = output_images(s), taps = {1, 1, 1, outputs[0]->size, 0};                                  \
    char *workspace = outputs[1]->data;                                                                          \
    T *results = destination_##NAME(outputs[0]->data, workspace + s->filter_at, &taps);                          \
    if (inputs[1]->size) {                                                                                       \
      padding_job job = {shape, inputs[0]->data, workspace + s->input_at};                                       \
      if (shape->copied) context->parallel_for(context, s->batch * shape->height, 16, pad_##NAME, &job);         \
      const T *gradient = bring_##NAME(context, inputs[1]->data, workspace + s->output_at, &from);               \
      const T *image = shape->copied ? job.to : job.from;                                                        \
      RUN##_##COMPUTE(context, shape, image, gradient, results, workspace);                                      \
    } else {                                                                                                     \
      memset(results, 0, (size_t)outputs[0]->size * sizeof(T));                                                  \
    }                                                                                                            \
    give_##NAME(context, results, outputs[0]->data, &taps);                                                      \
    return TF_OK;                                                                                                \
  }

#endif
