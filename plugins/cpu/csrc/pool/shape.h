/* Parameters of the kernels of this family. */
#ifndef TIMBERFRAME_CPU_POOL_SHAPE_H
#define TIMBERFRAME_CPU_POOL_SHAPE_H

#include <stdint.h>

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))

/* The parameters, in this order; sizes whatever the layout. A window covers part of the image, or `depth` channels. */
typedef struct pool_shape {
  int64_t batch, height, width, channels, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_y, stride_x, pad_top, pad_left, depth, channels_first;
} pool_shape;

/* The part of a window that lies inside the image. */
typedef struct window {
  int64_t top, bottom, left, right;
} window;

static inline window clip(const pool_shape *s, int64_t out_y, int64_t out_x) {
  int64_t y = out_y * s->stride_y - s->pad_top, x = out_x * s->stride_x - s->pad_left;
  return (window){MAXIMUM(y, 0), MINIMUM(y + s->kernel_height, s->height), MAXIMUM(x, 0),
                  MINIMUM(x + s->kernel_width, s->width)};
}

#endif
