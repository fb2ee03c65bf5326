/* Copies of whole tensors: ops whose output is their input with another shape, or the same one. */
#include <string.h>

#include "common/table.h"

typedef struct copy_job {
  const char *from;
  char *to;
} copy_job;

static void copy_range(void *argument, int64_t begin, int64_t end) {
  const copy_job *job = argument;
  memcpy(job->to + begin, job->from + begin, (size_t)(end - begin));
}

/* parameters: number of bytes. */
static int32_t copy(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                    const int64_t *parameters) {
  copy_job job = {inputs[0]->data, outputs[0]->data};
  if (job.from != job.to) context->parallel_for(context, parameters[0], 1 << 18, copy_range, &job);
  return TF_OK;
}

TF_TABLE(movement_copy) = {TF_ENTRY(copy), TF_END};
