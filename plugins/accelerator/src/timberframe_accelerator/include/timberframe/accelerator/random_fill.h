/* Numbers that fill a tensor. T: its dtype. DRAW: UNIFORM, NORMAL, TRUNCATED, BITS (T is unsigned) or RANGE. WIDE: 1
 * where a number takes 64 bits. */
#include <timberframe/accelerator/random_origin.h>

#define UNIFORM 0
#define NORMAL 1
#define TRUNCATED 2
#define BITS 3
#define RANGE 4
#define PER_BLOCK (WIDE ? 2 : 4)

#if DRAW == UNIFORM
#include <timberframe/random/uniform.h>
#elif WIDE && (DRAW == NORMAL || DRAW == TRUNCATED)
#include <timberframe/random/normal_float64.h>
#elif DRAW == NORMAL || DRAW == TRUNCATED
#include <timberframe/random/normal_float32.h>
#endif

typedef TF_VALUE(T) value;

/* The numbers of one block. */
static inline void tf_draw(const uint32_t *x, value *numbers) {
#if DRAW == UNIFORM
#define TF_UNIFORM_OF(dtype) TF_UNIFORM_OF_(dtype)
#define TF_UNIFORM_OF_(dtype) uniform_##dtype
  for (int k = 0; k < PER_BLOCK; k++) {
#if WIDE
    numbers[k] = uniform_float64(x[2 * k], x[2 * k + 1]);
#else
    numbers[k] = TF_UNIFORM_OF(T)(x[k]);
#endif
  }
#elif DRAW == BITS || DRAW == RANGE
  for (int k = 0; k < PER_BLOCK; k++) {
#if WIDE
    numbers[k] = (value)(x[2 * k] | (uint64_t)x[2 * k + 1] << 32);
#else
    numbers[k] = (value)x[k];
#endif
  }
#elif WIDE
  normal_pair_float64(x, numbers);
#else
  normal_pair_float32(x, numbers);
  normal_pair_float32(x + 2, numbers + 2);
#endif
}

#if DRAW == TRUNCATED
/* As many numbers as a block has, each group from a run of blocks of its own: what is too large is drawn again. */
static inline void tf_draw_truncated(const philox *g, uint64_t first, value *kept) {
  int filled = 0;
  for (uint64_t block = first; filled < PER_BLOCK; block++) {
    uint32_t x[4];
    value drawn[4];
    philox_block(g, block, x);
    tf_draw(x, drawn);
    for (int k = 0; k < PER_BLOCK; k++) {
      const int fits = drawn[k] < NORMAL_TRUNCATION && drawn[k] > -NORMAL_TRUNCATION;
      if (fits && filled < PER_BLOCK) kept[filled++] = drawn[k];
    }
  }
}
#endif

#if DRAW != RANGE

TF_KERNEL tf_fill(TF_ORIGIN, TF_GLOBAL TF_STORAGE(T) *out, tf_index count, tf_index blocks) {
  TF_OPEN
  TF_EACH(i, blocks) {
    value numbers[4];
#if DRAW == TRUNCATED
    tf_draw_truncated(&g, (uint64_t)i * (PER_BLOCK * NORMAL_SAMPLES_PER_OUTPUT / 4), numbers);
#else
    uint32_t x[4];
    philox_block(&g, (uint64_t)i, x);
    tf_draw(x, numbers);
#endif
    for (int k = 0; k < PER_BLOCK; k++) {
      if (i * PER_BLOCK + k < count) TF_STORE(T, out, i * PER_BLOCK + k, numbers[k]);
    }
  }
}

#else

/* Integers in [low, high). U: the unsigned type of T. */
TF_KERNEL tf_fill_range(TF_ORIGIN, TF_GLOBAL const TF_STORAGE(T) *least, TF_GLOBAL const TF_STORAGE(T) *limit,
                        TF_GLOBAL TF_STORAGE(T) *out, tf_index count, tf_index blocks) {
  TF_OPEN
  const value begin = least[0], end = limit[0];
  const TF_VALUE(U) span = (TF_VALUE(U))end - (TF_VALUE(U))begin;
  if (begin >= end) {
    tf_report(status, node, 2, (int64_t)begin, (int64_t)end, 0);
    return;
  }
  TF_EACH(i, blocks) {
    value numbers[4];
    uint32_t x[4];
    philox_block(&g, (uint64_t)i, x);
    tf_draw(x, numbers);
    for (int k = 0; k < PER_BLOCK; k++) {
      if (i * PER_BLOCK + k < count) {
        out[i * PER_BLOCK + k] = (value)((TF_VALUE(U))begin + (TF_VALUE(U))numbers[k] % span);
      }
    }
  }
}

#endif
