/* The input pixels that meet the same taps of a strided convolution, along one dimension. */
#ifndef TIMBERFRAME_CPU_CONV_PHASES_H
#define TIMBERFRAME_CPU_CONV_PHASES_H

#include <stdint.h>

#include "conv/shape.h"

/* Pixel first_pixel + k * stride is under tap phase_tap(t) of the window at origin + k + t * reach, for k < pixels and
 * t < taps. */
typedef struct phase_axis {
  int64_t first_pixel, pixels, first_tap, step, taps, origin, reach;
} phase_axis;

/* The t-th of a phase's taps; they are numbered so that rising t means rising windows. */
static inline int64_t phase_tap(const phase_axis *axis, int64_t t) {
  return axis->first_tap + (axis->taps - 1 - t) * axis->step;
}

/* The pixels whose distance from the first window's start leaves the remainder `phase` by the stride. */
static inline phase_axis axis_phase(int64_t phase, int64_t stride, int64_t pad, int64_t size, int64_t kernel,
                                    int64_t dilation) {
  phase_axis axis = {.step = 1};
  axis.first_pixel = ((phase - pad) % stride + stride) % stride;
  axis.pixels = axis.first_pixel < size ? (size - axis.first_pixel - 1) / stride + 1 : 0;
  while (axis.step * dilation % stride) axis.step++;
  while (axis.first_tap < axis.step && axis.first_tap * dilation % stride != phase) axis.first_tap++;
  if (axis.first_tap < axis.step && axis.first_tap < kernel) axis.taps = (kernel - 1 - axis.first_tap) / axis.step + 1;
  axis.reach = axis.step * dilation / stride;
  axis.origin = (axis.first_pixel + pad - phase_tap(&axis, 0) * dilation) / stride;
  return axis;
}

/* Whether some pixels are under no tap at all. */
static inline int has_empty_phase(const conv_shape *s) {
  for (int64_t phase = 0; phase < s->stride_y; phase++) {
    if (!axis_phase(phase, s->stride_y, s->pad_top, s->height, s->kernel_height, s->dilation_y).taps) return 1;
  }
  for (int64_t phase = 0; phase < s->stride_x; phase++) {
    if (!axis_phase(phase, s->stride_x, s->pad_left, s->width, s->kernel_width, s->dilation_x).taps) return 1;
  }
  return 0;
}

/* The convolution of the output's gradient that gives the pixels of one phase. */
static inline conv_shape phase_shape(const conv_shape *s, const phase_axis *y, const phase_axis *x) {
  return (conv_shape){.batch = s->batch,
                      .height = s->out_height,
                      .width = s->out_width,
                      .out_height = y->pixels,
                      .out_width = x->pixels,
                      .kernel_height = y->taps,
                      .kernel_width = x->taps,
                      .stride_y = 1,
                      .stride_x = 1,
                      .dilation_y = y->reach,
                      .dilation_x = x->reach,
                      .pad_top = -y->origin,
                      .pad_left = -x->origin,
                      .groups = s->groups,
                      .in_channels = s->out_channels,
                      .out_channels = s->in_channels};
}

#endif
