/* Reductions: what one (op, dtype) brings, and the driver that walks the tensor.
 *
 * A tensor is seen as rows of `width` kept elements, `width` being 1 where the last dimension is reduced. Everything is
 * built from one step: combine rows into `width` accumulators. Long rows of width 1 are folded into LANES accumulators
 * side by side, so the same vectorised loop serves sums along any axis. The order of combination depends on the shape
 * alone, never on the number of threads; chains are short (blocks, then a tree), which keeps rounding errors small. */
#ifndef TIMBERFRAME_CPU_REDUCER_H
#define TIMBERFRAME_CPU_REDUCER_H

#include "common/table.h"

enum {
  LANES = 256,      /* accumulators side by side when rows are narrow */
  BLOCK_ROWS = 512, /* rows that are combined before their result joins the accumulators of the block before */
  TILE = 1024       /* most columns that one piece of work keeps accumulators for */
};

typedef struct reducer {
  int64_t element, accumulator, output; /* bytes of each */
  void (*start)(void *accumulators, int64_t count);
  /* Combines `rows` rows of `width` elements, `stride` elements apart, into `width` accumulators. */
  void (*panel)(void *accumulators, const void *elements, int64_t rows, int64_t width, int64_t stride);
  /* accumulators[i] from elements[i * length ... (i + 1) * length), for short rows. */
  void (*short_rows)(void *accumulators, const void *elements, int64_t count, int64_t length);
  void (*combine)(void *accumulators, const void *others, int64_t count);
  /* reduced: how many elements each result was made of. */
  void (*finish)(void *output, const void *accumulators, int64_t count, int64_t reduced);
} reducer;

#define reduce_run TF_JOIN(tf_reduce_run, _, TF_ISA, )

/* parameters: see reduce_shape in driver.c. inputs: the tensor; the workspace, if any, follows the output. */
int32_t reduce_run(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                   const int64_t *parameters, const reducer *reducer);

/* How elements are combined. load(x): element to accumulator. combine(a, b): of two accumulators. */
#define REDUCER_STEPS(name, ELEMENT, ACCUMULATOR, identity, load, combine)                                               \
  static void name##_start(void *accumulators, int64_t count) {                                                          \
    ACCUMULATOR *a = accumulators;                                                                                       \
    for (int64_t i = 0; i < count; i++) a[i] = identity;                                                                 \
  }                                                                                                                      \
  static void name##_combine(void *accumulators, const void *others, int64_t count) {                                    \
    ACCUMULATOR *restrict a = accumulators;                                                                              \
    const ACCUMULATOR *restrict b = others;                                                                              \
    for (int64_t i = 0; i < count; i++) a[i] = combine(a[i], b[i]);                                                      \
  }                                                                                                                      \
  static void name##_rows(ACCUMULATOR *restrict a, const ELEMENT *restrict x, int64_t rows, int64_t width,               \
                          int64_t stride) {                                                                              \
    int64_t r = 0;                                                                                                       \
    for (; r + 4 <= rows; r += 4) {                                                                                      \
      const ELEMENT *x0 = x + r * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;                       \
      for (int64_t i = 0; i < width; i++) {                                                                              \
        a[i] = combine(a[i], combine(combine(load(x0[i]), load(x1[i])), combine(load(x2[i]), load(x3[i]))));             \
      }                                                                                                                  \
    }                                                                                                                    \
    for (; r < rows; r++) {                                                                                              \
      const ELEMENT *x0 = x + r * stride;                                                                                \
      for (int64_t i = 0; i < width; i++) a[i] = combine(a[i], load(x0[i]));                                             \
    }                                                                                                                    \
  }                                                                                                                      \
  static void name##_narrow(ACCUMULATOR *a, const ELEMENT *x, int64_t rows, int64_t width) {                             \
    ACCUMULATOR lanes[LANES];                                                                                            \
    int64_t group = LANES;                                                                                               \
    while (group * width > LANES || group > rows) group /= 2;                                                            \
    const int64_t wide = group * width;                                                                                  \
    while (rows > 0) {                                                                                                   \
      const int64_t some = rows < BLOCK_ROWS * group ? rows : BLOCK_ROWS * group;                                        \
      const int64_t whole = some / group, left = (some - whole * group) * width;                                         \
      if (whole > 0) {                                                                                                   \
        for (int64_t i = 0; i < wide; i++) lanes[i] = load(x[i]);                                                        \
        name##_rows(lanes, x + wide, whole - 1, wide, wide);                                                             \
      } else {                                                                                                           \
        name##_start(lanes, wide);                                                                                       \
      }                                                                                                                  \
      name##_rows(lanes, x + whole * wide, 1, left, left);                                                               \
      for (int64_t half = wide / 2; half >= width; half /= 2) name##_combine(lanes, lanes + half, half);                 \
      name##_combine(a, lanes, width);                                                                                   \
      rows -= some;                                                                                                      \
      x += some * width;                                                                                                 \
    }                                                                                                                    \
  }                                                                                                                      \
  static void name##_panel(void *accumulators, const void *elements, int64_t rows, int64_t width, int64_t stride) {      \
    ACCUMULATOR *a = accumulators;                                                                                       \
    const ELEMENT *x = elements;                                                                                         \
    if (stride == width && 2 * width <= LANES && rows > 1) {                                                             \
      name##_narrow(a, x, rows, width);                                                                                  \
      return;                                                                                                            \
    }                                                                                                                    \
    if (rows <= BLOCK_ROWS) {                                                                                            \
      name##_rows(a, x, rows, width, stride);                                                                            \
      return;                                                                                                            \
    }                                                                                                                    \
    ACCUMULATOR block[TILE];                                                                                             \
    for (int64_t r = 0; r < rows; r += BLOCK_ROWS) {                                                                     \
      name##_start(block, width);                                                                                        \
      name##_rows(block, x + r * stride, rows - r < BLOCK_ROWS ? rows - r : BLOCK_ROWS, width, stride);                  \
      name##_combine(a, block, width);                                                                                   \
    }                                                                                                                    \
  }                                                                                                                      \
  static void name##_short_rows(void *accumulators, const void *elements, int64_t count, int64_t length) {               \
    ACCUMULATOR *restrict a = accumulators;                                                                              \
    const ELEMENT *restrict x = elements;                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                                                \
      ACCUMULATOR sum = identity;                                                                                        \
      for (int64_t j = 0; j < length; j++) sum = combine(sum, load(x[i * length + j]));                                  \
      a[i] = sum;                                                                                                        \
    }                                                                                                                    \
  }

/* The kernel `name`: the steps, then finish(a, n) from the accumulator of n elements to the output. */
#define REDUCER_KERNEL(name, steps, ELEMENT, ACCUMULATOR, OUTPUT, finish)                                                \
  static void name##_finish(void *output, const void *accumulators, int64_t count, int64_t reduced) {                    \
    OUTPUT *restrict out = output;                                                                                       \
    const ACCUMULATOR *restrict a = accumulators;                                                                        \
    (void)reduced;                                                                                                       \
    for (int64_t i = 0; i < count; i++) out[i] = finish(a[i], reduced);                                                  \
  }                                                                                                                      \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                    \
                      const int64_t *parameters) {                                                                       \
    static const reducer functions = {sizeof(ELEMENT),   sizeof(ACCUMULATOR), sizeof(OUTPUT),                            \
                                      steps##_start,     steps##_panel,       steps##_short_rows,                         \
                                      steps##_combine,   name##_finish};                                                 \
    return reduce_run(context, inputs, outputs, parameters, &functions);                                                 \
  }

#define REDUCER(name, ELEMENT, ACCUMULATOR, OUTPUT, identity, load, combine, finish)                                     \
  REDUCER_STEPS(name, ELEMENT, ACCUMULATOR, identity, load, combine)                                                     \
  REDUCER_KERNEL(name, name, ELEMENT, ACCUMULATOR, OUTPUT, finish)

/* Max and Min of an integer type. */
#define INTEGER_EXTREMES(name, type, low, high)                       \
  REDUCER(max_##name, type, type, type, low, AS_IT_IS, MAXIMUM, ONLY) \
  REDUCER(min_##name, type, type, type, high, AS_IT_IS, MINIMUM, ONLY)

/* Ways to finish. */
#define ONLY(a, n) (a)
#define TO_FLOAT16(a, n) tf_float16_from_float32(a)
#define TO_BFLOAT16(a, n) tf_bfloat16_from_float32(a)

#endif
