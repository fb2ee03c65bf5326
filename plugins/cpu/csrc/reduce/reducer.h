/* Reductions: what one (op, dtype) brings, and the driver that walks the tensor.
 *
 * A tensor is seen as rows of `width` kept elements, `width` being 1 where the last dimension is reduced. Everything is
 * built from one step: combine rows into `width` accumulators. Long rows of width 1 are folded into LANES accumulators
 * side by side, so the same vectorised loop serves sums along any axis. The order of combination depends on the shape
 * alone, never on the number of threads; chains are short (blocks, then a tree), which keeps rounding errors small. */
#ifndef TIMBERFRAME_CPU_REDUCER_H
#define TIMBERFRAME_CPU_REDUCER_H

#include "common/table.h"
#include "reduce/elements.h"
#include "reduce/vectors.h"

enum {
  LANES = 256,      /* accumulators side by side when rows are narrow */
  BLOCK_ROWS = 512, /* rows that are combined before their result joins the accumulators of the block before */
  TILE = 1024,      /* most columns that one piece of work keeps accumulators for */
  LINE_BLOCK = 1 << 13
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

/* name_rows: rows into one accumulator for each column, element by element. */
#define SCALAR_ROWS(name, ELEMENT, ACCUMULATOR, load, combine)                                               \
  static void name##_rows(ACCUMULATOR *restrict a, const ELEMENT *restrict x, int64_t rows, int64_t width,   \
                          int64_t stride) {                                                                  \
    int64_t r = 0;                                                                                           \
    for (; r + 4 <= rows; r += 4) {                                                                          \
      const ELEMENT *x0 = x + r * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;           \
      for (int64_t i = 0; i < width; i++) {                                                                  \
        a[i] = combine(a[i], combine(combine(load(x0[i]), load(x1[i])), combine(load(x2[i]), load(x3[i])))); \
      }                                                                                                      \
    }                                                                                                        \
    for (; r < rows; r++) {                                                                                  \
      const ELEMENT *x0 = x + r * stride;                                                                    \
      for (int64_t i = 0; i < width; i++) a[i] = combine(a[i], load(x0[i]));                                 \
    }                                                                                                        \
  }

/* The same with vectors of accumulators. `vector` is the dtype whose vectors (vectors.h) hold them, fetch(x) loads one
 * from elements, combine_vectors joins two. */
#define VECTOR_ROWS(name, ELEMENT, ACCUMULATOR, load, combine, vector, fetch, combine_vectors)              \
  static void name##_rows(ACCUMULATOR *restrict a, const ELEMENT *restrict x, int64_t rows, int64_t width,  \
                          int64_t stride) {                                                                 \
    enum { COUNT = VECTOR_BYTES / sizeof(ACCUMULATOR) };                                                    \
    int64_t r = 0;                                                                                          \
    for (; r + 4 <= rows; r += 4) {                                                                         \
      const ELEMENT *x0 = x + r * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;          \
      int64_t i = 0;                                                                                        \
      for (; i + COUNT <= width; i += COUNT) {                                                              \
        const vector##_vector v01 = combine_vectors(fetch(x0 + i), fetch(x1 + i));                          \
        const vector##_vector v23 = combine_vectors(fetch(x2 + i), fetch(x3 + i));                          \
        vector##_vector v = combine_vectors(v01, v23);                                                      \
        v = combine_vectors(vector##_load((const void *)(a + i)), v);                                       \
        memcpy(a + i, &v, sizeof v);                                                                        \
      }                                                                                                     \
      for (; i < width; i++) {                                                                              \
        const ACCUMULATOR v01 = combine(load(x0[i]), load(x1[i])), v23 = combine(load(x2[i]), load(x3[i])); \
        const ACCUMULATOR v = combine(v01, v23);                                                            \
        a[i] = combine(a[i], v);                                                                            \
      }                                                                                                     \
    }                                                                                                       \
    for (; r < rows; r++) {                                                                                 \
      const ELEMENT *x0 = x + r * stride;                                                                   \
      int64_t i = 0;                                                                                        \
      for (; i + COUNT <= width; i += COUNT) {                                                              \
        const vector##_vector v = combine_vectors(vector##_load((const void *)(a + i)), fetch(x0 + i));     \
        memcpy(a + i, &v, sizeof v);                                                                        \
      }                                                                                                     \
      for (; i < width; i++) a[i] = combine(a[i], load(x0[i]));                                             \
    }                                                                                                       \
  }

/* name_line: a long row of width 1 into one accumulator, with four vectors of accumulators in registers. */
#define REDUCER_LINE(name, ELEMENT, ACCUMULATOR, identity, load, combine, vector, fetch, combine_vectors) \
  static void name##_line(ACCUMULATOR *a, const ELEMENT *x, int64_t rows, int64_t width) {                \
    enum { COUNT = VECTOR_BYTES / sizeof(ACCUMULATOR) };                                                  \
    (void)width;                                                                                          \
    while (rows > 0) {                                                                                    \
      const int64_t some = rows < LINE_BLOCK ? rows : LINE_BLOCK;                                         \
      vector##_vector v0 = vector##_spread(identity), v1 = v0, v2 = v0, v3 = v0;                          \
      int64_t i = 0;                                                                                      \
      for (; i + 4 * COUNT <= some; i += 4 * COUNT) {                                                     \
        v0 = combine_vectors(v0, fetch(x + i));                                                           \
        v1 = combine_vectors(v1, fetch(x + i + COUNT));                                                   \
        v2 = combine_vectors(v2, fetch(x + i + 2 * COUNT));                                               \
        v3 = combine_vectors(v3, fetch(x + i + 3 * COUNT));                                               \
      }                                                                                                   \
      for (; i + COUNT <= some; i += COUNT) v0 = combine_vectors(v0, fetch(x + i));                       \
      v0 = combine_vectors(v0, v1);                                                                       \
      v2 = combine_vectors(v2, v3);                                                                       \
      v0 = combine_vectors(v0, v2);                                                                       \
      ACCUMULATOR lanes[COUNT];                                                                           \
      memcpy(lanes, &v0, sizeof lanes);                                                                   \
      for (int64_t j = 0; i < some; i++, j++) lanes[j] = combine(lanes[j], load(x[i]));                   \
      for (int64_t half = COUNT / 2; half > 0; half /= 2) {                                               \
        for (int64_t j = 0; j < half; j++) lanes[j] = combine(lanes[j], lanes[j + half]);                 \
      }                                                                                                   \
      *a = combine(*a, lanes[0]);                                                                         \
      rows -= some;                                                                                       \
      x += some;                                                                                          \
    }                                                                                                     \
  }

/* How elements are combined. load(x): element to accumulator. combine(a, b): of two accumulators. line: `line` where
 * REDUCER_LINE made that function, else `narrow`. */
#define REDUCER_STEPS(name, ELEMENT, ACCUMULATOR, identity, load, combine, line)                                    \
  static void name##_start(void *accumulators, int64_t count) {                                                     \
    ACCUMULATOR *a = accumulators;                                                                                  \
    for (int64_t i = 0; i < count; i++) a[i] = identity;                                                            \
  }                                                                                                                 \
  static void name##_combine(void *accumulators, const void *others, int64_t count) {                               \
    ACCUMULATOR *restrict a = accumulators;                                                                         \
    const ACCUMULATOR *restrict b = others;                                                                         \
    for (int64_t i = 0; i < count; i++) a[i] = combine(a[i], b[i]);                                                 \
  }                                                                                                                 \
  static void name##_narrow(ACCUMULATOR *a, const ELEMENT *x, int64_t rows, int64_t width) {                        \
    ACCUMULATOR lanes[LANES];                                                                                       \
    int64_t group = LANES;                                                                                          \
    while (group * width > LANES || group > rows) group /= 2;                                                       \
    const int64_t wide = group * width;                                                                             \
    while (rows > 0) {                                                                                              \
      const int64_t some = rows < BLOCK_ROWS * group ? rows : BLOCK_ROWS * group;                                   \
      const int64_t whole = some / group, left = (some - whole * group) * width;                                    \
      if (whole > 0) {                                                                                              \
        for (int64_t i = 0; i < wide; i++) lanes[i] = load(x[i]);                                                   \
        name##_rows(lanes, x + wide, whole - 1, wide, wide);                                                        \
      } else {                                                                                                      \
        name##_start(lanes, wide);                                                                                  \
      }                                                                                                             \
      name##_rows(lanes, x + whole * wide, 1, left, left);                                                          \
      for (int64_t half = wide / 2; half >= width; half /= 2) name##_combine(lanes, lanes + half, half);            \
      name##_combine(a, lanes, width);                                                                              \
      rows -= some;                                                                                                 \
      x += some * width;                                                                                            \
    }                                                                                                               \
  }                                                                                                                 \
  static void name##_panel(void *accumulators, const void *elements, int64_t rows, int64_t width, int64_t stride) { \
    ACCUMULATOR *a = accumulators;                                                                                  \
    const ELEMENT *x = elements;                                                                                    \
    if (width == 1 && stride == 1 && rows > 1) {                                                                    \
      name##_##line(a, x, rows, 1);                                                                                 \
      return;                                                                                                       \
    }                                                                                                               \
    if (stride == width && 2 * width <= LANES && rows > 1) {                                                        \
      name##_narrow(a, x, rows, width);                                                                             \
      return;                                                                                                       \
    }                                                                                                               \
    if (rows <= BLOCK_ROWS) {                                                                                       \
      name##_rows(a, x, rows, width, stride);                                                                       \
      return;                                                                                                       \
    }                                                                                                               \
    ACCUMULATOR block[TILE];                                                                                        \
    for (int64_t r = 0; r < rows; r += BLOCK_ROWS) {                                                                \
      name##_start(block, width);                                                                                   \
      name##_rows(block, x + r * stride, rows - r < BLOCK_ROWS ? rows - r : BLOCK_ROWS, width, stride);             \
      name##_combine(a, block, width);                                                                              \
    }                                                                                                               \
  }                                                                                                                 \
  static void name##_short_rows(void *accumulators, const void *elements, int64_t count, int64_t length) {          \
    ACCUMULATOR *restrict a = accumulators;                                                                         \
    const ELEMENT *restrict x = elements;                                                                           \
    for (int64_t i = 0; i < count; i++) {                                                                           \
      ACCUMULATOR sum = identity;                                                                                   \
      for (int64_t j = 0; j < length; j++) sum = combine(sum, load(x[i * length + j]));                             \
      a[i] = sum;                                                                                                   \
    }                                                                                                               \
  }

/* The kernel `name`: the steps, then finish(a, n) from the accumulator of n elements to the output. */
#define REDUCER_KERNEL(name, steps, ELEMENT, ACCUMULATOR, OUTPUT, finish)                             \
  static void name##_finish(void *output, const void *accumulators, int64_t count, int64_t reduced) { \
    OUTPUT *restrict out = output;                                                                    \
    const ACCUMULATOR *restrict a = accumulators;                                                     \
    (void)reduced;                                                                                    \
    for (int64_t i = 0; i < count; i++) out[i] = finish(a[i], reduced);                               \
  }                                                                                                   \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    static const reducer functions = {sizeof(ELEMENT),   sizeof(ACCUMULATOR), sizeof(OUTPUT),         \
                                      steps##_start,     steps##_panel,       steps##_short_rows,     \
                                      steps##_combine,   name##_finish};                              \
    return reduce_run(context, inputs, outputs, parameters, &functions);                              \
  }

#define REDUCER(name, ELEMENT, ACCUMULATOR, OUTPUT, identity, load, combine, finish) \
  SCALAR_ROWS(name, ELEMENT, ACCUMULATOR, load, combine)                             \
  REDUCER_STEPS(name, ELEMENT, ACCUMULATOR, identity, load, combine, narrow)         \
  REDUCER_KERNEL(name, name, ELEMENT, ACCUMULATOR, OUTPUT, finish)

/* A reducer whose elements fit in vectors. */
#define VECTOR_REDUCER(name, ELEMENT, ACCUMULATOR, OUTPUT, identity, load, combine, finish, vector, fetch, vectors) \
  VECTOR_ROWS(name, ELEMENT, ACCUMULATOR, load, combine, vector, fetch, vectors)                                    \
  REDUCER_LINE(name, ELEMENT, ACCUMULATOR, identity, load, combine, vector, fetch, vectors)                         \
  REDUCER_STEPS(name, ELEMENT, ACCUMULATOR, identity, load, combine, line)                                          \
  REDUCER_KERNEL(name, name, ELEMENT, ACCUMULATOR, OUTPUT, finish)

/* Max and Min of an integer type. */
#define INTEGER_EXTREMES(name, type, low, high)                       \
  REDUCER(max_##name, type, type, type, low, AS_IT_IS, MAXIMUM, ONLY) \
  REDUCER(min_##name, type, type, type, high, AS_IT_IS, MINIMUM, ONLY)

/* Vectors of float32 from elements of half the width, and their squares. */
static inline float32_vector float16_fetch(const tf_float16 *x) {
  float wide[VECTOR_BYTES / sizeof(float)];
  tf_float32_from_float16_n(wide, x, VECTOR_BYTES / sizeof(float));
  return float32_load(wide);
}

static inline float32_vector bfloat16_fetch(const tf_bfloat16 *x) {
  float wide[VECTOR_BYTES / sizeof(float)];
  tf_float32_from_bfloat16_n(wide, x, VECTOR_BYTES / sizeof(float));
  return float32_load(wide);
}

/* Ways to finish. */
#define ONLY(a, n) (a)
#define TO_FLOAT16(a, n) tf_float16_from_float32(a)
#define TO_BFLOAT16(a, n) tf_bfloat16_from_float32(a)

#endif
