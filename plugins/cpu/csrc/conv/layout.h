/* Copies between a node's tensors and NHWC tensors of the type that it computes in. */
#ifndef TIMBERFRAME_CPU_CONV_LAYOUT_H
#define TIMBERFRAME_CPU_CONV_LAYOUT_H

#include <stdint.h>

#include "common/half.h"

/* load_<type> copies NCHW to NHWC, store_<type> NHWC to NCHW, by rows of the image. With one channel both are plain
 * conversions. */
typedef struct layout_job {
  const void *from;
  void *to;
  int64_t height, width, channels;
} layout_job;

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
#define SAME(x) (x)

COPIES(float, float, float, SAME, SAME)
COPIES(double, double, double, SAME, SAME)
COPIES(int32, uint32_t, uint32_t, SAME, SAME)
COPIES(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
COPIES(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

#undef SAME
#undef COPIES

#endif
