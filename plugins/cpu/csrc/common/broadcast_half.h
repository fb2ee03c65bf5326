/* Elementwise loops on float16 and bfloat16: a float32 loop between exact conversions, block by block, rounding
 * once. */
#ifndef TIMBERFRAME_CPU_BROADCAST_HALF_H
#define TIMBERFRAME_CPU_BROADCAST_HALF_H

#include "common/broadcast.h"
#include "common/half.h"

enum { TF_HALF_BLOCK = 256 };

typedef void tf_half_to_float(float *restrict out, const uint16_t *restrict in, int64_t count);
typedef void tf_half_from_float(uint16_t *restrict out, const float *restrict in, int64_t count);

/* from: NULL where the loop writes elements of `out_size` bytes that are no halves. halves: bit k says that
 * operand k is one; the others are handed to the loop as they are, elements of one byte. */
static inline void tf_half_loop(int64_t count, const void *const *in, const int64_t *step, void *out, int32_t operands,
                                int32_t halves, tf_loop *loop, tf_half_to_float *to, tf_half_from_float *from) {
  float buffers[TF_OPERANDS][TF_HALF_BLOCK], result[TF_HALF_BLOCK];
  const void *block[TF_OPERANDS];
  for (int64_t begin = 0; begin < count; begin += TF_HALF_BLOCK) {
    const int64_t size = count - begin < TF_HALF_BLOCK ? count - begin : TF_HALF_BLOCK;
    for (int32_t k = 0; k < operands; k++) {
      if (!(halves >> k & 1)) {
        block[k] = (const uint8_t *)in[k] + begin * step[k];
        continue;
      }
      if (step[k] || begin == 0) to(buffers[k], (const uint16_t *)in[k] + begin * step[k], step[k] ? size : 1);
      block[k] = buffers[k];
    }
    loop(size, block, step, from ? (void *)result : (uint8_t *)out + begin);
    if (from) from((uint16_t *)out + begin, result, size);
  }
}

#define TF_HALF_LOOP2(name, type, from)                                                                             \
  static TF_NOINLINE void name##_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) { \
    tf_half_loop(count, in, step, out, 2, 3, name##_float32_loop, tf_float32_from_##type##_n, from);                \
  }

/* The loops name_float16_loop and name_bfloat16_loop around name_float32_loop of two operands. */
#define TF_HALF_LOOPS2(name)                               \
  TF_HALF_LOOP2(name, float16, tf_float16_from_float32_n)  \
  TF_HALF_LOOP2(name, bfloat16, tf_bfloat16_from_float32_n)

/* The same where the result is a byte (a truth value). */
#define TF_HALF_TESTS2(name)         \
  TF_HALF_LOOP2(name, float16, NULL) \
  TF_HALF_LOOP2(name, bfloat16, NULL)

#endif
