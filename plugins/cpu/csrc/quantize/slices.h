/* What kernels of quantization share: elements in slices along one axis, each slice with numbers of its own, and rounding. A
 * tensor with one range is one slice. */
#ifndef TIMBERFRAME_CPU_QUANTIZE_SLICES_H
#define TIMBERFRAME_CPU_QUANTIZE_SLICES_H

#include <math.h>

#include "common/table.h"

enum { ELEMENTS_A_UNIT = 16384 };

/* The parameters of the kernels begin with it: how many slices there are, and how many elements of one lie side by side. */
typedef struct quant_slices {
  int64_t count, inner;
} quant_slices;

/* Elements that lie side by side, from `begin` to `end`, are of slice `slice`: the loop's body. */
#define FOR_EACH_PART(slices, first, last, begin, end, slice)                                                       \
  for (int64_t begin = (first), slice = (first) / (slices).inner % (slices).count,                                  \
               end = ((first) / (slices).inner + 1) * (slices).inner;                                               \
       end = end < (last) ? end : (last), begin < (last);                                                           \
       begin = end, end += (slices).inner, slice = slice + 1 == (slices).count ? 0 : slice + 1)

/* NaN stays NaN. */
#define BETWEEN(x, least, most) ((x) > (most) ? (most) : (x) < (least) ? (least) : (x))

/* Halves away from 0. */
static inline float round_away(float x) {
  const float whole = truncf(x);
  return whole + copysignf(fabsf(x - whole) >= 0.5f ? 1.0f : 0.0f, x);
}

#endif
