/* OneHot, ReverseSequence, DynamicPartition and DynamicStitch: whole slices of bytes are moved or filled. */
#include <string.h>

#include "common/table.h"
#include "indexing/index.h"

#define SERIAL_BYTES 65536 /* bytes worth a thread */

/* parameters: indices before and after the new dimension, its depth, bytes of an element. */
static int32_t one_hot(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                       const int64_t *parameters) {
  int64_t before = parameters[0], after = parameters[1], depth = parameters[2], item = parameters[3];
  const char *on = inputs[1]->data, *off = inputs[2]->data;
  char *out = outputs[0]->data;
  int64_t bytes = outputs[0]->size * item, filled = item;
  (void)context;
  if (!bytes) return TF_OK;
  memcpy(out, off, (size_t)item);
  for (; filled < bytes; filled *= 2) { /* what is filled already doubles */
    memcpy(out + filled, out, (size_t)(filled < bytes - filled ? filled : bytes - filled));
  }
  for (int64_t i = 0; i < before; i++) {
    for (int64_t j = 0; j < after; j++) {
      int64_t index = load_index(inputs[0], i * after + j);
      if (index >= 0 && index < depth) memcpy(out + ((i * depth + index) * after + j) * item, on, (size_t)item);
    }
  }
  return TF_OK;
}

/* The input is [outer, first, middle, second, inner bytes]; one of first and second is the batch, one the sequence. */
typedef struct reverse_shape {
  int64_t outer, first, middle, second, inner, batch_first;
} reverse_shape;

typedef struct reverse_job {
  const reverse_shape *shape;
  const tf_tensor *lengths;
  const char *from;
  char *to;
} reverse_job;

static void reverse_rows(void *argument, int64_t begin, int64_t end) {
  const reverse_job *job = argument;
  const reverse_shape *s = job->shape;
  for (int64_t row = begin; row < end; row++) { /* of [outer, first, middle] */
    int64_t i = row / s->middle % s->first;
    for (int64_t j = 0; j < s->second; j++) {
      int64_t step = s->batch_first ? j : i, length = load_index(job->lengths, s->batch_first ? i : j);
      int64_t from = row * s->second + j;
      if (step < length) {
        int64_t change = length - 1 - 2 * step;
        from += change * (s->batch_first ? 1 : s->middle * s->second);
      }
      memcpy(job->to + (row * s->second + j) * s->inner, job->from + from * s->inner, (size_t)s->inner);
    }
  }
}

/* Reason 1: length {0} of sequence {1} is above {2} or negative. */
static int32_t reverse_sequence(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                const int64_t *parameters) {
  const reverse_shape *s = (const reverse_shape *)parameters;
  int64_t limit = s->batch_first ? s->second : s->first;
  for (int64_t i = 0; i < inputs[1]->size; i++) {
    int64_t length = load_index(inputs[1], i);
    if (length < 0 || length > limit) return tf_fail(context, TF_INVALID_ARGUMENT, 1, length, i, limit, 0);
  }
  if (!outputs[0]->size) return TF_OK;
  reverse_job job = {s, inputs[1], inputs[0]->data, outputs[0]->data};
  int64_t rows = s->outer * s->first * s->middle;
  context->parallel_for(context, rows, 1 + SERIAL_BYTES / (s->second * s->inner), reverse_rows, &job);
  return TF_OK;
}

/* parameters: number of partitions, bytes of a slice. Reason 1: partition {0} at position {1} is not below {2}. */
static int32_t dynamic_partition(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                 const int64_t *parameters) {
  int64_t count = parameters[0], inner = parameters[1];
  const int32_t *partitions = inputs[1]->data;
  const char *from = inputs[0]->data;
  for (int64_t p = 0; p < count; p++) outputs[p]->shape[0] = 0;
  for (int64_t i = 0; i < inputs[1]->size; i++) {
    int64_t p = partitions[i];
    if (p < 0 || p >= count) return tf_fail(context, TF_INVALID_ARGUMENT, 1, p, i, count, 0);
    memcpy((char *)outputs[p]->data + outputs[p]->shape[0]++ * inner, from + i * inner, (size_t)inner);
  }
  for (int64_t p = 0; p < count; p++) {
    outputs[p]->size = 1;
    for (int d = 0; d < outputs[p]->rank; d++) outputs[p]->size *= outputs[p]->shape[d];
  }
  return TF_OK;
}

/* parameters: output rows, bytes of a slice; for each row the input it comes from (-1: none) and the row there. */
static int32_t dynamic_stitch(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const int64_t *parameters) {
  int64_t rows = parameters[0], inner = parameters[1];
  char *to = outputs[0]->data;
  (void)context;
  for (int64_t i = 0; i < rows; i++, to += inner) {
    int64_t source = parameters[2 + 2 * i], row = parameters[3 + 2 * i];
    if (source < 0) memset(to, 0, (size_t)inner);
    else memcpy(to, (const char *)inputs[source]->data + row * inner, (size_t)inner);
  }
  return TF_OK;
}

TF_TABLE(indexing_rows) = {TF_ENTRY(one_hot), TF_ENTRY(reverse_sequence), TF_ENTRY(dynamic_partition),
                           TF_ENTRY(dynamic_stitch), TF_END};
