/* Where the pixels of a convolution lie, and the elements that their windows cover.
 *
 * sizes: the words below, then the words of each phase. A phase is the pixels of the target that lie a step apart: the
 * only one of a convolution, and those of a gradient by the input with strides, which meet the same taps.
 * BY_...: multiplier and shift of tf_quotient for the counts.
 * terms: five rows of sizes[TERMS] numbers: where the tap lies from the pixel in depth, height and width, the offset of
 * the element from the pixel's first, and the term's line in the filter. Terms after a phase's last, up to a multiple
 * of the tile's depth, lie FAR outside. */
#ifndef TIMBERFRAME_ACCELERATOR_PIXELS_H
#define TIMBERFRAME_ACCELERATOR_PIXELS_H

#include <timberframe/accelerator/division.h>

enum {
  SOURCE_DEPTH, SOURCE_HEIGHT, SOURCE_WIDTH, SOURCE_CHANNELS, STEP_DEPTH, STEP_HEIGHT, STEP_WIDTH,
  TARGET_DEPTH, TARGET_HEIGHT, TARGET_WIDTH, TARGET_CHANNELS, APART_DEPTH, APART_HEIGHT, APART_WIDTH,
  BATCH, GROUPS, GROUP_CHANNELS, GROUP_COLUMNS, GROUP_LINES, FILTER_PITCH, FILTER_STEP, TERMS, PHASES
};
enum {
  FIRST_DEPTH, FIRST_HEIGHT, FIRST_WIDTH, COUNT_DEPTH, COUNT_HEIGHT, COUNT_WIDTH, FIRST_TERM, TERM_COUNT,
  BY_DEPTH, BY_HEIGHT = BY_DEPTH + 2, BY_WIDTH = BY_HEIGHT + 2, PHASE_WORDS = BY_WIDTH + 2
};

#define FAR (-(1 << 30))
#define QUOTIENT(n, dimension) \
  tf_quotient(n, phase[COUNT_##dimension], phase[BY_##dimension], phase[BY_##dimension + 1])

/* The offset of the first element of pixel `number` of a phase in the target. */
static inline int64_t tf_target_offset(TF_GLOBAL const int32_t *sizes, TF_GLOBAL const int32_t *phase, int32_t number) {
  const int32_t row = QUOTIENT(number, WIDTH), x = number - row * phase[COUNT_WIDTH];
  const int32_t plane = QUOTIENT(row, HEIGHT), y = row - plane * phase[COUNT_HEIGHT];
  const int32_t image = QUOTIENT(plane, DEPTH), z = plane - image * phase[COUNT_DEPTH];
  int64_t offset = (int64_t)image * sizes[TARGET_DEPTH] + phase[FIRST_DEPTH] + z * sizes[APART_DEPTH];
  offset = offset * sizes[TARGET_HEIGHT] + phase[FIRST_HEIGHT] + y * sizes[APART_HEIGHT];
  offset = offset * sizes[TARGET_WIDTH] + phase[FIRST_WIDTH] + x * sizes[APART_WIDTH];
  return offset * sizes[TARGET_CHANNELS];
}

#define IS_INSIDE(sizes, position, z, y, x)                              \
  ((uint32_t)((position)[0] + (z)) < (uint32_t)(sizes)[SOURCE_DEPTH] &&  \
   (uint32_t)((position)[1] + (y)) < (uint32_t)(sizes)[SOURCE_HEIGHT] && \
   (uint32_t)((position)[2] + (x)) < (uint32_t)(sizes)[SOURCE_WIDTH])

#endif
