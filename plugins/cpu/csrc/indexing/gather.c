/* Gather, GatherV2 and GatherNd. */
#include <stdatomic.h>
#include <string.h>

#include "common/table.h"
#include "indexing/index.h"

#define SERIAL_BYTES 65536 /* bytes worth a thread */
#define PART 4096          /* indices that are checked before they are used, and are in the cache then */
#define AHEAD 4            /* slices between the one that is copied and the one that is fetched */

/* The parameters of gather, in this order: params is [batch, outer, limit, inner bytes], indices [batch, count]. */
typedef struct gather_shape {
  int64_t batch, outer, limit, count, inner;
} gather_shape;

typedef struct gather_job {
  const gather_shape *shape;
  const void *indices;
  const char *from;
  char *to;
  _Atomic int64_t bad; /* position of a bad index, or INT64_MAX */
} gather_job;

typedef struct bytes16 {
  uint64_t half[2];
} __attribute__((packed, may_alias)) bytes16;
typedef uint64_t bytes8 __attribute__((aligned(1), may_alias));
typedef uint32_t bytes4 __attribute__((aligned(1), may_alias));
typedef uint16_t bytes2 __attribute__((aligned(1), may_alias));
typedef uint8_t bytes1;

#define COPY_AS(TYPE)                                                                    \
  for (int64_t i = 0; i < many; i++) ((TYPE *)to)[i] = ((const TYPE *)from)[indices[i]]; \
  break

/* Keeps the first bad position that any thread found. */
static void report(gather_job *job, int64_t position) {
  int64_t known = atomic_load(&job->bad);
  while (position < known && !atomic_compare_exchange_weak(&job->bad, &known, position)) {}
}

/* Units: slices of the output. */
#define GATHER(INDEX)                                                                        \
  static void gather_##INDEX(void *argument, int64_t begin, int64_t end) {                   \
    gather_job *job = argument;                                                              \
    const gather_shape *s = job->shape;                                                      \
    while (begin < end) {                                                                    \
      int64_t block = begin / s->count, first = begin % s->count, many = s->count - first;   \
      if (many > end - begin) many = end - begin;                                            \
      if (many > PART) many = PART;                                                          \
      int64_t offset = block / s->outer * s->count + first, bad = 0;                         \
      const INDEX##_t *restrict indices = (const INDEX##_t *)job->indices + offset;          \
      for (int64_t i = 0; i < many; i++) bad |= (indices[i] < 0) | (indices[i] >= s->limit); \
      if (bad) {                                                                             \
        for (bad = 0; indices[bad] >= 0 && indices[bad] < s->limit; bad++) {}                \
        report(job, offset + bad);                                                           \
        return;                                                                              \
      }                                                                                      \
      const char *from = job->from + block * s->limit * s->inner;                            \
      char *restrict to = job->to + begin * s->inner;                                        \
      switch (s->inner) {                                                                    \
        case 1: COPY_AS(bytes1);                                                             \
        case 2: COPY_AS(bytes2);                                                             \
        case 4: COPY_AS(bytes4);                                                             \
        case 8: COPY_AS(bytes8);                                                             \
        case 16: COPY_AS(bytes16);                                                           \
        default:                                                                             \
          for (int64_t i = 0; i < many; i++) {                                               \
            /* slices lie anywhere, so the processor does not foresee which come next */     \
            if (i + AHEAD < many) __builtin_prefetch(from + indices[i + AHEAD] * s->inner);  \
            memcpy(to + i * s->inner, from + indices[i] * s->inner, (size_t)s->inner);       \
          }                                                                                  \
      }                                                                                      \
      begin += many;                                                                         \
    }                                                                                        \
  }

GATHER(int16)
GATHER(int32)
GATHER(int64)

/* Reason 1: index {0} at position {1} is not below {2}. */
static int32_t gather(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                      const int64_t *parameters) {
  const gather_shape *s = (const gather_shape *)parameters;
  const tf_tensor *indices = inputs[1];
  if (!outputs[0]->size) return TF_OK;
  tf_range *body = indices->dtype == TF_INT64 ? gather_int64 : indices->dtype == TF_INT32 ? gather_int32 : gather_int16;
  gather_job job = {s, indices->data, inputs[0]->data, outputs[0]->data, INT64_MAX};
  context->parallel_for(context, s->batch * s->outer * s->count, 1 + SERIAL_BYTES / s->inner, body, &job);
  int64_t bad = atomic_load(&job.bad);
  if (bad == INT64_MAX) return TF_OK;
  return tf_fail(context, TF_INVALID_ARGUMENT, 1, load_index(indices, bad), bad, s->limit, 0);
}

/* parameters: tuples, their length, bytes of a slice, whether bad tuples read zeros. Reason 1: tuple {0} has {1} in
 * dimension {2}, which is not below {3}. */
static int32_t gather_nd(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                         const int64_t *parameters) {
  int64_t count = parameters[0], depth = parameters[1], inner = parameters[2], bad = 0;
  const char *from = inputs[0]->data;
  char *to = outputs[0]->data;
  if (!outputs[0]->size) return TF_OK;
  for (int64_t i = 0; i < count; i++, to += inner) {
    int64_t row = tuple_row(inputs[1], i, depth, inputs[0]->shape, &bad);
    if (row >= 0) {
      memcpy(to, from + row * inner, (size_t)inner);
    } else if (parameters[3]) {
      memset(to, 0, (size_t)inner);
    } else {
      int64_t index = load_index(inputs[1], i * depth + bad);
      return tf_fail(context, TF_INVALID_ARGUMENT, 1, i, index, bad, inputs[0]->shape[bad]);
    }
  }
  return TF_OK;
}

TF_TABLE(indexing_gather) = {TF_ENTRY(gather), TF_ENTRY(gather_nd), TF_END};
