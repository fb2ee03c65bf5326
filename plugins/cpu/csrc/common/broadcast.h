/* Elementwise kernels of up to three broadcasting operands.
 *
 * A family writes inner loops of type tf_loop and wraps each with TF_BROADCAST_KERNEL. The shapes are analysed in
 * Python (timberframe_cpu/broadcast.py), which merges adjacent dimensions and gives the walk as parameters:
 *
 *   [0] number of outer dimensions   [1] elements of the inner dimension   [2] bytes of an output element
 *   [3] grain of parallel_for        [4] whether inner runs are so short that operands are expanded into blocks first
 *   [5 + 3 k, ...] for operand k: inner step in bytes (0 where it repeats), bytes of an element, tf_repeat
 *   [14 + 4 d, ...] for outer dimension d, the innermost first: size, and each operand's stride in bytes
 *   after these: what the kernel takes in addition, such as attrs of the op
 *
 * An operand of the output's size and dtype may be the output itself: element i is read before it is written, and
 * no other element of that operand depends on it. So loops say TF_VECTOR, never restrict. */
#ifndef TIMBERFRAME_CPU_BROADCAST_H
#define TIMBERFRAME_CPU_BROADCAST_H

#include <stdint.h>
#include <string.h>

#include "common/table.h"

#if defined(__clang__)
#define TF_VECTOR _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TF_VECTOR _Pragma("GCC ivdep")
#else
#define TF_VECTOR
#endif

#define TF_NOINLINE __attribute__((noinline)) /* each loop exists once, whatever calls it */

enum {
  TF_OPERANDS = 3,
  TF_BLOCK = 512, /* elements */
  TF_WIDEST = 16, /* bytes of the widest element */
  TF_SPILL = 64,
  TF_BUFFER = TF_BLOCK * TF_WIDEST + TF_SPILL,
  TF_STRETCH = 128,       /* bytes of an operand for which those after them are fetched */
  TF_NEAR_BYTES = 8 << 10, /* of a result that lies in the first cache level with its operands */
  TF_FAR_BYTES = 4 << 20, /* of one that does not lie in the second; below, fetching costs more than it gains */
  TF_OPERAND_WORDS = 5,
  TF_OUTER_WORDS = 14
};

/* dense: has every element of the output; scalar: has one; row: the same inner run again and again; other: the rest. */
enum tf_repeat { TF_DENSE, TF_SCALAR, TF_ROW, TF_OTHER };

/* Computes `count` elements. in[k] points to operand k's first element, which serves for all where step[k] is 0. */
typedef void tf_loop(int64_t count, const void *const *in, const int64_t *step, void *out);

typedef struct tf_walk {
  tf_loop *loop;
  int32_t operands;
  const char *in[TF_OPERANDS];
  char *out;
  const int64_t *parameters;
} tf_walk;

typedef struct tf_position {
  int64_t index[TF_MAX_RANK];
  int64_t offset[TF_OPERANDS]; /* of the current inner run, in bytes */
} tf_position;

static inline const int64_t *tf_operand(const tf_walk *walk, int32_t k) {
  return walk->parameters + TF_OPERAND_WORDS + 3 * k;
}

static inline tf_position tf_position_of_run(const tf_walk *walk, int64_t run) {
  tf_position at = {{0}, {0}};
  const int64_t *outer = walk->parameters + TF_OUTER_WORDS;
  for (int64_t d = 0; d < walk->parameters[0]; d++, outer += 4) {
    at.index[d] = run % outer[0];
    run /= outer[0];
    for (int32_t k = 0; k < walk->operands; k++) at.offset[k] += at.index[d] * outer[1 + k];
  }
  return at;
}

/* Moves on by `runs`, which do not go past the end of the innermost outer dimension. */
static inline void tf_next_runs(const tf_walk *walk, tf_position *at, int64_t runs) {
  const int64_t *outer = walk->parameters + TF_OUTER_WORDS;
  for (int64_t d = 0; d < walk->parameters[0]; d++, outer += 4, runs = 1) {
    for (int32_t k = 0; k < walk->operands; k++) at->offset[k] += runs * outer[1 + k];
    at->index[d] += runs;
    if (at->index[d] < outer[0]) return;
    for (int32_t k = 0; k < walk->operands; k++) at->offset[k] -= outer[0] * outer[1 + k];
    at->index[d] = 0;
  }
}

/* Writes `count` copies of one element, in whole stores of TF_SPILL bytes: up to so many bytes beyond are
 * overwritten. */
#define TF_SPLAT(T)                                                                                                  \
  static inline void tf_splat_##T(char *to, const char *from, int64_t count) {                                       \
    T lanes[TF_SPILL / sizeof(T)], value;                                                                            \
    memcpy(&value, from, sizeof value);                                                                              \
    for (size_t i = 0; i < TF_SPILL / sizeof(T); i++) lanes[i] = value;                                              \
    for (int64_t i = 0; i < count * (int64_t)sizeof(T); i += TF_SPILL) memcpy(to + i, lanes, TF_SPILL);              \
  }
TF_SPLAT(uint8_t)
TF_SPLAT(uint16_t)
TF_SPLAT(uint32_t)
TF_SPLAT(uint64_t)

/* Inner runs of one operand, `stride` bytes apart, one after the other; each has `count` elements of `size` bytes,
 * which are one element again and again where `step` is 0. May spill TF_SPILL bytes over the end. */
static inline void tf_expand(char *to, const char *from, int64_t runs, int64_t stride, int64_t count, int64_t step,
                             int64_t size) {
#define TF_REPEAT(T)                                                                                                 \
  for (int64_t r = 0; r < runs; r++) tf_splat_##T(to + r * count * (int64_t)sizeof(T), from + r * stride, count)
  if (step) {
    for (int64_t r = 0; r < runs; r++) memcpy(to + r * count * size, from + r * stride, (size_t)(count * size));
  } else if (size == 1) {
    TF_REPEAT(uint8_t);
  } else if (size == 2) {
    TF_REPEAT(uint16_t);
  } else if (size == 4) {
    TF_REPEAT(uint32_t);
  } else if (size == 8) {
    TF_REPEAT(uint64_t);
  } else {
    for (int64_t r = 0; r < runs; r++) {
      for (int64_t i = 0; i < count; i++) memcpy(to + (r * count + i) * size, from + r * stride, (size_t)size);
    }
  }
#undef TF_REPEAT
}

/* Operands of TF_OTHER for `runs` runs from `at` on, which moves on. */
static inline void tf_fill_block(const tf_walk *walk, tf_position *at, int64_t runs, char (*buffers)[TF_BUFFER]) {
  const int64_t inner = walk->parameters[1], *outer = walk->parameters + TF_OUTER_WORDS;
  for (int64_t done = 0; done < runs;) {
    const int64_t left = outer[0] - at->index[0], count = runs - done < left ? runs - done : left;
    for (int32_t k = 0; k < walk->operands; k++) {
      const int64_t *operand = tf_operand(walk, k);
      if (operand[2] != TF_OTHER) continue;
      char *to = buffers[k] + done * inner * operand[1];
      tf_expand(to, walk->in[k] + at->offset[k], count, outer[1 + k], inner, operand[0], operand[1]);
    }
    tf_next_runs(walk, at, count);
    done += count;
  }
}

/* Whole runs, several in a block: what does not lie dense is copied out of its runs first. */
static inline void tf_walk_blocks(const tf_walk *walk, int64_t run, int64_t runs) {
  const int64_t inner = walk->parameters[1], out_size = walk->parameters[2];
  const int64_t runs_in_block = TF_BLOCK / inner;
  _Alignas(TF_ALIGNMENT) char buffers[TF_OPERANDS][TF_BUFFER];
  tf_position at = tf_position_of_run(walk, run);
  int32_t others = 0;
  for (int32_t k = 0; k < walk->operands; k++) {
    const int64_t *operand = tf_operand(walk, k);
    others += operand[2] == TF_OTHER;
    const int64_t copies = runs < runs_in_block ? runs : runs_in_block;
    if (operand[2] == TF_ROW) tf_expand(buffers[k], walk->in[k], copies, 0, inner, operand[0], operand[1]);
  }
  for (const int64_t end = run + runs; run < end; run += runs_in_block) {
    const int64_t block = end - run < runs_in_block ? end - run : runs_in_block;
    const void *in[TF_OPERANDS];
    int64_t step[TF_OPERANDS];
    for (int32_t k = 0; k < walk->operands; k++) {
      const int64_t *operand = tf_operand(walk, k);
      step[k] = operand[2] != TF_SCALAR;
      in[k] = operand[2] == TF_DENSE    ? walk->in[k] + run * inner * operand[1]
              : operand[2] == TF_SCALAR ? walk->in[k]
                                        : buffers[k];
    }
    if (others) tf_fill_block(walk, &at, block, buffers);
    walk->loop(block * inner, in, step, walk->out + run * inner * out_size);
  }
}

/* Output elements [begin, end) of one run, `column` elements into the one at `offset`. */
static inline void tf_walk_run(const tf_walk *walk, const int64_t *offset, int64_t column, int64_t begin, int64_t end) {
  const void *in[TF_OPERANDS];
  int64_t step[TF_OPERANDS];
  for (int32_t k = 0; k < walk->operands; k++) {
    const int64_t stride = tf_operand(walk, k)[0];
    in[k] = walk->in[k] + offset[k] + column * stride;
    step[k] = stride != 0;
  }
  walk->loop(end - begin, in, step, walk->out + begin * walk->parameters[2]);
}

/* Output elements [begin, end). */
static inline void tf_walk_runs(const tf_walk *walk, int64_t begin, int64_t end) {
  if (walk->parameters[0] == 0) { /* one run: small tensors and blocks of chains feel the divisions below */
    const int64_t start[TF_OPERANDS] = {0};
    tf_walk_run(walk, start, begin, begin, end);
    return;
  }
  const int64_t inner = walk->parameters[1];
  tf_position at = tf_position_of_run(walk, begin / inner);
  int64_t column = begin % inner;
  while (begin < end) {
    const int64_t count = end - begin < inner - column ? end - begin : inner - column;
    if (walk->parameters[4] && column == 0 && end - begin >= inner) {
      const int64_t runs = (end - begin) / inner;
      tf_walk_blocks(walk, begin / inner, runs);
      begin += runs * inner;
      if (begin < end) at = tf_position_of_run(walk, begin / inner);
      continue;
    }
    tf_walk_run(walk, at.offset, column, begin, begin + count);
    begin += count;
    column = 0;
    if (begin < end) tf_next_runs(walk, &at, 1);
  }
}

static inline void tf_walk_range(void *argument, int64_t begin, int64_t end) {
  tf_walk_runs(argument, begin, end);
}

/* The parameters after those of the walk. */
static inline const int64_t *tf_own_parameters(const int64_t *parameters) {
  return parameters + TF_OUTER_WORDS + 4 * parameters[0];
}

static inline int32_t tf_broadcast(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                   const int64_t *parameters, int32_t operands, tf_loop *loop) {
  const int64_t count = outputs[0]->size;
  if (count == 0) return TF_OK;
  tf_walk walk = {loop, operands, {NULL}, outputs[0]->data, parameters};
  for (int32_t k = 0; k < operands; k++) walk.in[k] = inputs[k]->data;
  if (count > parameters[3]) {
    context->parallel_for(context, count, parameters[3], tf_walk_range, &walk);
  } else {
    tf_walk_runs(&walk, 0, count);
  }
  return TF_OK;
}

/* The kernel `name` of so many operands around the loop name_loop. */
#define TF_BROADCAST_KERNEL(name, operands)                                                                          \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                \
                      const int64_t *parameters) {                                                                   \
    return tf_broadcast(context, inputs, outputs, parameters, operands, name##_loop);                                \
  }

/* The same for a loop that reads the kernel's own parameters: they are one more operand, which repeats. */
#define TF_BROADCAST_KERNEL_OF(name, operands)                                                                       \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                \
                      const int64_t *parameters) {                                                                   \
    const tf_tensor own = {.data = (void *)(intptr_t)tf_own_parameters(parameters)};                                 \
    const tf_tensor *given[TF_OPERANDS] = {NULL};                                                                    \
    for (int32_t k = 0; k < operands; k++) given[k] = inputs[k];                                                     \
    given[operands] = &own;                                                                                          \
    return tf_broadcast(context, given, outputs, parameters, operands + 1, name##_loop);                             \
  }

/* The loop name_loop of two operands of type T; `expression` gives an element of type R from x and y. */
#define TF_LOOP2(name, T, R, expression)                                                                             \
  static TF_NOINLINE void name##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {        \
    const T *a = in[0], *b = in[1];                                                                                  \
    R *z = out;                                                                                                      \
    if (step[0] && step[1]) {                                                                                        \
      TF_VECTOR for (int64_t i = 0; i < count; i++) {                                                                \
        const T x = a[i], y = b[i];                                                                                  \
        z[i] = (R)(expression);                                                                                      \
      }                                                                                                              \
    } else if (step[0]) {                                                                                            \
      const T y = *b;                                                                                                \
      TF_VECTOR for (int64_t i = 0; i < count; i++) {                                                                \
        const T x = a[i];                                                                                            \
        z[i] = (R)(expression);                                                                                      \
      }                                                                                                              \
    } else {                                                                                                         \
      const T x = *a;                                                                                                \
      TF_VECTOR for (int64_t i = 0; i < count; i++) {                                                                \
        const T y = b[i];                                                                                            \
        z[i] = (R)(expression);                                                                                      \
      }                                                                                                              \
    }                                                                                                                \
  }

/* Two operands and a result of type T from beyond the second cache level: the loop name_far_loop fetches them a stretch
 * ahead, which the processor's own prefetching does only late for three streams. To come after TF_LOOP2. */
#define TF_FAR_LOOP2(name, T, expression)                                                                            \
  static TF_NOINLINE void name##_far_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {    \
    enum { STRETCH = TF_STRETCH / sizeof(T), LINE = 64 / sizeof(T) };                                                \
    const T *a = in[0], *b = in[1];                                                                                  \
    T *z = out;                                                                                                      \
    int64_t begin = 0;                                                                                               \
    for (; step[0] && step[1] && begin + STRETCH <= count; begin += STRETCH) {                                       \
      for (int64_t i = begin + STRETCH; i < begin + 2 * STRETCH; i += LINE) {                                        \
        __builtin_prefetch(a + i);                                                                                   \
        __builtin_prefetch(b + i);                                                                                   \
        __builtin_prefetch(z + i, 1);                                                                                \
      }                                                                                                              \
      TF_VECTOR for (int64_t i = begin; i < begin + STRETCH; i++) {                                                  \
        const T x = a[i], y = b[i];                                                                                  \
        z[i] = (T)(expression);                                                                                      \
      }                                                                                                              \
    }                                                                                                                \
    const void *const rest[] = {a + begin, b + begin};                                                               \
    name##_loop(count - begin, rest, step, z + begin);                                                               \
  }

/* The kernel around name_near_loop, name_loop and name_far_loop. */
#define TF_SIZED_KERNEL2(name, T)                                                                                    \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                \
                      const int64_t *parameters) {                                                                   \
    const int64_t size = outputs[0]->size * (int64_t)sizeof(T);                                                      \
    tf_loop *loop = size <= TF_NEAR_BYTES ? name##_near_loop : size < TF_FAR_BYTES ? name##_loop : name##_far_loop;  \
    return tf_broadcast(context, inputs, outputs, parameters, 2, loop);                                              \
  }

/* TF_LOOP2 for an expression of many instructions: one loop only, for which a repeated operand is written out. */
#define TF_COSTLY_LOOP2(name, T, R, expression)                                                                      \
  static TF_NOINLINE void name##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {        \
    T repeated[2][TF_BLOCK];                                                                                         \
    for (int32_t k = 0; k < 2; k++) {                                                                                \
      for (int64_t i = 0; !step[k] && i < TF_BLOCK && i < count; i++) repeated[k][i] = *(const T *)in[k];            \
    }                                                                                                                \
    for (int64_t begin = 0; begin < count; begin += TF_BLOCK) {                                                      \
      const int64_t size = count - begin < TF_BLOCK ? count - begin : TF_BLOCK;                                      \
      const T *a = step[0] ? (const T *)in[0] + begin : repeated[0];                                                 \
      const T *b = step[1] ? (const T *)in[1] + begin : repeated[1];                                                 \
      R *z = (R *)out + begin;                                                                                       \
      TF_VECTOR for (int64_t i = 0; i < size; i++) {                                                                 \
        const T x = a[i], y = b[i];                                                                                  \
        z[i] = (R)(expression);                                                                                      \
      }                                                                                                              \
    }                                                                                                                \
  }

#endif
