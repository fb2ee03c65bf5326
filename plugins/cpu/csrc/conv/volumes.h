/* Convolutions of volumes as convolutions of images: the planes under a window are put side by side, as channels.
 *
 * An output plane (n, z) is convolved from an image [height, width, kernel depth * channels] by a filter whose taps
 * along the depth have become channels too. */
#ifndef TIMBERFRAME_CPU_CONV_VOLUMES_H
#define TIMBERFRAME_CPU_CONV_VOLUMES_H

#include <string.h>

#include "conv/layout.h"
#include "conv/padded.h"

/* The parameters, in this order. `plane` is the convolution of the images, one for each output plane; its height and
 * width are those of the image that is convolved, padded ones where a filter's gradient is made. The *_at are byte
 * offsets in the workspace: of the volumes with channels last in the computing type, of the filter for the images
 * and the results of either kind, and of the images. */
typedef struct volume_conv {
  correlation plane;
  int64_t batch, depth, out_depth, kernel_depth, stride_z, dilation_z, pad_z, channels;
  int64_t height, width, channels_first; /* of the node's input */
  int64_t volume_at, gradient_at, filter_at, images_at;
} volume_conv;

typedef struct volume_job {
  const volume_conv *shape;
  const void *from;
  void *to;
} volume_job;

static inline image_shape input_volumes(const volume_conv *v) {
  return (image_shape){v->batch, v->depth, v->height * v->width, v->channels, v->channels_first};
}
static inline image_shape output_volumes(const volume_conv *v) {
  const conv_shape *s = &v->plane.conv;
  return (image_shape){v->batch, v->out_depth, s->out_height * s->out_width, s->out_channels, v->channels_first};
}

/* images_<type> makes rows of the images of a volume, with zeros outside it; volumes_<type> adds rows of the images'
 * gradients up to rows of the volume's. taps_<type> brings a filter's depth beside its channels, depths_<type> back. */
#define VOLUMES(NAME, T)                                                                                            \
  static inline void images_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    const volume_job *job = argument;                                                                               \
    const volume_conv *v = job->shape;                                                                              \
    int64_t channels = v->channels, wide = v->kernel_depth * channels, height = v->plane.height;                    \
    int64_t width = v->plane.width, top = v->plane.copied ? v->plane.conv.pad_top : 0;                              \
    int64_t left = v->plane.copied ? v->plane.conv.pad_left : 0;                                                    \
    for (int64_t row = begin; row < end; row++) {                                                                   \
      int64_t y = row % height - top, plane = row / height % v->out_depth, n = row / height / v->out_depth;         \
      T *to = (T *)job->to + row * width * wide;                                                                    \
      for (int64_t k = 0; k < v->kernel_depth; k++, to += channels) {                                               \
        int64_t z = plane * v->stride_z + k * v->dilation_z - v->pad_z;                                             \
        int inside = y >= 0 && y < v->height && z >= 0 && z < v->depth;                                             \
        const T *from = (const T *)job->from + (((n * v->depth + z) * v->height + y) * v->width - left) * channels; \
        for (int64_t x = 0; x < width; x++) {                                                                       \
          if (inside && x >= left && x - left < v->width) {                                                         \
            memcpy(to + x * wide, from + x * channels, (size_t)channels * sizeof(T));                               \
          } else {                                                                                                  \
            memset(to + x * wide, 0, (size_t)channels * sizeof(T));                                                 \
          }                                                                                                         \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static inline void volumes_##NAME(void *argument, int64_t begin, int64_t end) {                                   \
    const volume_job *job = argument;                                                                               \
    const volume_conv *v = job->shape;                                                                              \
    int64_t channels = v->channels, wide = v->kernel_depth * channels;                                              \
    for (int64_t row = begin; row < end; row++) {                                                                   \
      int64_t y = row % v->height, z = row / v->height % v->depth, n = row / v->height / v->depth;                  \
      T *restrict to = (T *)job->to + row * v->width * channels;                                                    \
      memset(to, 0, (size_t)(v->width * channels) * sizeof(T));                                                     \
      for (int64_t k = 0; k < v->kernel_depth; k++) {                                                               \
        int64_t position = z + v->pad_z - k * v->dilation_z, plane = position / v->stride_z;                        \
        if (position < 0 || position % v->stride_z || plane >= v->out_depth) continue;                              \
        const T *from = (const T *)job->from +                                                                      \
                        ((n * v->out_depth + plane) * v->height + y) * v->width * wide + k * channels;              \
        for (int64_t x = 0; x < v->width; x++) {                                                                    \
          for (int64_t c = 0; c < channels; c++) to[x * channels + c] += from[x * wide + c];                        \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static inline void taps_##NAME(const volume_conv *v, const T *from, T *to) {                                      \
    int64_t taps = v->plane.conv.kernel_height * v->plane.conv.kernel_width;                                        \
    int64_t block = v->channels * v->plane.conv.out_channels;                                                       \
    for (int64_t k = 0; k < v->kernel_depth; k++) {                                                                 \
      for (int64_t t = 0; t < taps; t++, from += block) {                                                           \
        memcpy(to + (t * v->kernel_depth + k) * block, from, (size_t)block * sizeof(T));                            \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static inline void depths_##NAME(const volume_conv *v, const T *from, T *to) {                                    \
    int64_t taps = v->plane.conv.kernel_height * v->plane.conv.kernel_width;                                        \
    int64_t block = v->channels * v->plane.conv.out_channels;                                                       \
    for (int64_t k = 0; k < v->kernel_depth; k++) {                                                                 \
      for (int64_t t = 0; t < taps; t++, to += block) {                                                             \
        memcpy(to, from + (t * v->kernel_depth + k) * block, (size_t)block * sizeof(T));                            \
      }                                                                                                             \
    }                                                                                                               \
  }
VOLUMES(float, float)
VOLUMES(double, double)
#undef VOLUMES

#endif
