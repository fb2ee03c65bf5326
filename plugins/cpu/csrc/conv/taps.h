/* Taps of windows that hang over the edge of the image. */
#ifndef TIMBERFRAME_CPU_CONV_TAPS_H
#define TIMBERFRAME_CPU_CONV_TAPS_H

#include <stdint.h>

/* Taps from `first` to `end` of a window along one dimension. */
typedef struct tap_range {
  int64_t first, end;
} tap_range;

/* The taps that lie in an image of this size for some window whose first tap is at `least` to `most`. */
static inline tap_range taps_inside(int64_t least, int64_t most, int64_t size, int64_t kernel, int64_t dilation) {
  tap_range taps = {most < 0 ? -most : 0, size - least};
  if (dilation != 1) {
    taps.first = (taps.first + dilation - 1) / dilation;
    taps.end = taps.end > 0 ? (taps.end + dilation - 1) / dilation : 0;
  }
  if (taps.end > kernel) taps.end = kernel;
  return taps.first < taps.end ? taps : (tap_range){0, 0};
}

#endif
