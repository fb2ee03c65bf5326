/* Copies between a node's tensors and NHWC tensors of the type that it computes in. */
#ifndef TIMBERFRAME_CPU_CONV_LAYOUT_H
#define TIMBERFRAME_CPU_CONV_LAYOUT_H

#include <stdint.h>

#include "common/half.h"
#include "common/table.h"
#include "conv/shape.h"

typedef struct layout_job {
  const void *from;
  void *to;
  int64_t height, width, channels;
} layout_job;

/* A tensor of images as its node has it. */
typedef struct image_shape {
  int64_t batch, height, width, channels, channels_first;
} image_shape;

/* Channels last are one row of all elements with a width of one channel. */
static inline layout_job layout_of(const void *from, void *to, const image_shape *i) {
  int first = i->channels_first;
  return (layout_job){from, to, i->height, first ? i->width : i->width * i->channels, first ? i->channels : 1};
}

/* load_<type> copies NCHW to NHWC, store_<type> NHWC to NCHW, by rows of the image. With one channel both are plain
 * conversions.
 *
 * bring_<type> makes an NHWC tensor of the computing type of a node's input, in `room` unless it is one already, and
 * give_<type> the node's output of such a tensor, which destination_<type> says where to make. */
#define COPIES(NAME, S, T, LOAD, STORE)                                                       \
  static inline void load_##NAME(void *argument, int64_t begin, int64_t end) {                \
    const layout_job *job = argument;                                                         \
    int64_t height = job->height, width = job->width, channels = job->channels;               \
    for (int64_t row = begin; row < end; row++) {                                             \
      int64_t image = row / height, y = row % height;                                         \
      T *to = (T *)job->to + row * width * channels;                                          \
      for (int64_t c = 0; c < channels; c++) {                                                \
        const S *from = (const S *)job->from + ((image * channels + c) * height + y) * width; \
        for (int64_t x = 0; x < width; x++) to[x * channels + c] = LOAD(from[x]);             \
      }                                                                                       \
    }                                                                                         \
  }                                                                                           \
  static inline void store_##NAME(void *argument, int64_t begin, int64_t end) {               \
    const layout_job *job = argument;                                                         \
    int64_t height = job->height, width = job->width, channels = job->channels;               \
    for (int64_t row = begin; row < end; row++) {                                             \
      int64_t image = row / height, y = row % height;                                         \
      const T *from = (const T *)job->from + row * width * channels;                          \
      for (int64_t c = 0; c < channels; c++) {                                                \
        S *to = (S *)job->to + ((image * channels + c) * height + y) * width;                 \
        for (int64_t x = 0; x < width; x++) to[x] = STORE(from[x * channels + c]);            \
      }                                                                                       \
    }                                                                                         \
  }
#define LAYOUTS(NAME, T, NARROW)                                                                                 \
  static inline const T *bring_##NAME(tf_context *context, const void *from, void *room, const image_shape *i) { \
    if (!i->channels_first && !NARROW) return from;                                                              \
    layout_job job = layout_of(from, room, i);                                                                   \
    context->parallel_for(context, i->batch * i->height, 16, load_##NAME, &job);                                 \
    return room;                                                                                                 \
  }                                                                                                              \
  static inline T *destination_##NAME(void *to, void *room, const image_shape *i) {                              \
    return i->channels_first || NARROW ? room : to;                                                              \
  }                                                                                                              \
  static inline void give_##NAME(tf_context *context, const void *room, void *to, const image_shape *i) {        \
    if (room == to) return;                                                                                      \
    layout_job job = layout_of(room, to, i);                                                                     \
    context->parallel_for(context, i->batch * i->height, 16, store_##NAME, &job);                                \
  }
#define SAME(x) (x)

COPIES(float, float, float, SAME, SAME)
COPIES(double, double, double, SAME, SAME)
COPIES(int32, uint32_t, uint32_t, SAME, SAME)
COPIES(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
COPIES(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

LAYOUTS(float, float, 0)
LAYOUTS(double, double, 0)
LAYOUTS(int32, uint32_t, 0)
LAYOUTS(float16, float, 1)
LAYOUTS(bfloat16, float, 1)

#undef SAME
#undef COPIES
#undef LAYOUTS

/* The images of a convolution. */
static inline image_shape input_images(const conv_shape *s) {
  return (image_shape){s->batch, s->height, s->width, s->groups * s->in_channels, s->channels_first};
}
static inline image_shape output_images(const conv_shape *s) {
  return (image_shape){s->batch, s->out_height, s->out_width, s->groups * s->out_channels, s->channels_first};
}

#endif
