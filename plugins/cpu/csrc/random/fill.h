/* Kernels that fill a tensor, each element from numbers of its own: blocks are made a chunk at a time and converted. */
#ifndef TIMBERFRAME_CPU_RANDOM_FILL_H
#define TIMBERFRAME_CPU_RANDOM_FILL_H

#include <timberframe/random/uniform.h>

#include "philox.h"

enum { CHUNK_BLOCKS = 64, CHUNK_NUMBERS = 4 * CHUNK_BLOCKS, CHUNK_GRAIN = 64 };

typedef struct fill_job {
  philox generator;
  void *out;
  int64_t size;
  const int64_t *parameters; /* the kernel's own */
} fill_job;

/* The kernel `name`: convert(bits, out, parameters) makes CHUNK_NUMBERS / numbers elements of a chunk's bits. */
#define FILL(name, type, numbers, convert)                                                                         \
  static void name##_range(void *argument, int64_t begin, int64_t end) {                                           \
    const fill_job *job = argument;                                                                                \
    enum { ELEMENTS = CHUNK_NUMBERS / (numbers) };                                                                 \
    uint32_t bits[CHUNK_NUMBERS];                                                                                  \
    for (int64_t i = begin; i < end; i++) {                                                                        \
      type *out = (type *)job->out + i * ELEMENTS, last[ELEMENTS];                                                 \
      const int64_t left = job->size - i * ELEMENTS;                                                               \
      const int64_t blocks = left < ELEMENTS ? (left * (numbers) + 3) / 4 : CHUNK_BLOCKS;                          \
      philox_blocks(&job->generator, (uint64_t)i * CHUNK_BLOCKS, 1, blocks, bits);                                 \
      if (left >= ELEMENTS) {                                                                                      \
        convert(bits, out, ELEMENTS, job->parameters);                                                             \
      } else {                                                                                                     \
        convert(bits, last, 4 / (numbers) * blocks, job->parameters);                                              \
        memcpy(out, last, (size_t)left * sizeof *last);                                                            \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,              \
                      const int64_t *parameters) {                                                                 \
    fill_job job = {{0, 0, 0}, outputs[0]->data, outputs[0]->size, parameters + PHILOX_PARAMETERS};                \
    const int32_t code = philox_open(context, inputs, parameters, &job.generator);                                 \
    if (code) return code;                                                                                         \
    const int64_t elements = CHUNK_NUMBERS / (numbers), chunks = (job.size + elements - 1) / elements;             \
    context->parallel_for(context, chunks, CHUNK_GRAIN, name##_range, &job);                                       \
    return TF_OK;                                                                                                  \
  }

#endif
