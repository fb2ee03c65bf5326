/* Einsum in up to four steps, as the builder planned them: each operand is copied to a dense [batch, free, summed]
 * layout (or used where it lies), labels of one operand alone being summed on the way; a batch of matrix products; and
 * the result is written to its elements of the output. float16 and bfloat16 become float32 in the first step and go back
 * in the last. */
#include <string.h>

#include "common/table.h"
#include "linalg/gemm.h"

enum { GRAIN = 1 << 14 };

/* `count` positions in `rank` dimensions, with the strides (in elements) of the tensor that is not dense. */
typedef struct walk {
  int64_t rank, count;
  const int64_t *sizes, *strides;
} walk;

typedef struct einsum_job {
  const void *from;
  void *to;
  walk kept, summed;
} einsum_job;

static int64_t position(const walk *w, int64_t index, int64_t *at) {
  int64_t offset = 0;
  for (int64_t d = w->rank - 1; d >= 0; d--) {
    at[d] = index % w->sizes[d];
    index /= w->sizes[d];
    offset += at[d] * w->strides[d];
  }
  return offset;
}

static int64_t advance(const walk *w, int64_t offset, int64_t *at) {
  for (int64_t d = w->rank - 1; d >= 0; d--) {
    offset += w->strides[d];
    if (++at[d] < w->sizes[d]) return offset;
    offset -= at[d] * w->strides[d];
    at[d] = 0;
  }
  return offset;
}

static const int64_t *read_walk(const int64_t *words, walk *w) {
  *w = (walk){words[0], words[1], words + 2, words + 2 + words[0]};
  return words + 2 + 2 * words[0];
}

/* name_gather: dense[i] = the sum of the elements at kept position i. name_scatter: element at kept position i =
 * dense[i].
 *
 * Parameters of the kernel: the number of operands; for each, whether it is copied, where to in the workspace, and the
 * kept and the summed walk; whether there is a product, its gemm_batch (of rank 1), where its result goes in the
 * workspace; whether the result is scattered, whether the output is cleared first, and the walk over the output. */
#define EINSUM(name, ELEMENT, VALUE, load, add, store, gemm)                                                   \
  static void name##_gather(void *argument, int64_t begin, int64_t end) {                                      \
    const einsum_job *job = argument;                                                                          \
    const ELEMENT *x = job->from;                                                                              \
    VALUE *out = job->to;                                                                                      \
    int64_t at[TF_MAX_RANK], inner[TF_MAX_RANK];                                                               \
    int64_t offset = position(&job->kept, begin, at);                                                          \
    for (int64_t i = begin; i < end; i++) {                                                                    \
      if (job->summed.rank == 0) {                                                                             \
        out[i] = load(x[offset]);                                                                              \
      } else {                                                                                                 \
        VALUE sum;                                                                                             \
        memset(&sum, 0, sizeof sum);                                                                           \
        int64_t inside = position(&job->summed, 0, inner);                                                     \
        for (int64_t j = 0; j < job->summed.count; j++) {                                                      \
          sum = add(sum, load(x[offset + inside]));                                                            \
          inside = advance(&job->summed, inside, inner);                                                       \
        }                                                                                                      \
        out[i] = sum;                                                                                          \
      }                                                                                                        \
      offset = advance(&job->kept, offset, at);                                                                \
    }                                                                                                          \
  }                                                                                                            \
  static void name##_scatter(void *argument, int64_t begin, int64_t end) {                                     \
    const einsum_job *job = argument;                                                                          \
    const VALUE *x = job->from;                                                                                \
    ELEMENT *out = job->to;                                                                                    \
    int64_t at[TF_MAX_RANK];                                                                                   \
    int64_t offset = position(&job->kept, begin, at);                                                          \
    for (int64_t i = begin; i < end; i++) {                                                                    \
      out[offset] = store(x[i]);                                                                               \
      offset = advance(&job->kept, offset, at);                                                                \
    }                                                                                                          \
  }                                                                                                            \
  static int32_t einsum_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                               const int64_t *parameters) {                                                    \
    const void *operands[2] = {0};                                                                             \
    char *const workspace = outputs[1]->data;                                                                  \
    const int64_t *words = parameters + 1;                                                                     \
    for (int64_t i = 0; i < parameters[0]; i++) {                                                              \
      const int64_t copied = words[0], to = words[1];                                                          \
      einsum_job job = {inputs[i]->data, workspace + to, {0}, {0}};                                            \
      words = read_walk(read_walk(words + 2, &job.kept), &job.summed);                                         \
      const int64_t each = job.summed.count + 1;                                                               \
      if (copied) context->parallel_for(context, job.kept.count, GRAIN / each + 1, name##_gather, &job);       \
      operands[i] = copied ? job.to : inputs[i]->data;                                                         \
    }                                                                                                          \
    const void *result = operands[0];                                                                          \
    const int64_t multiplied = words[0];                                                                       \
    const gemm_batch *batch = (const void *)(words + 1);                                                       \
    words += 1 + 12;                                                                                           \
    const int64_t scattered = words[1];                                                                        \
    if (multiplied) {                                                                                          \
      char *product = scattered ? workspace + words[0] : outputs[0]->data;                                     \
      const int32_t code = gemm_run(context, batch, gemm, sizeof(VALUE), operands[0], operands[1], product);   \
      if (code != TF_OK) return code;                                                                          \
      result = product;                                                                                        \
    }                                                                                                          \
    if (scattered) {                                                                                           \
      einsum_job job = {result, outputs[0]->data, {0}, {0}};                                                   \
      if (words[2]) memset(outputs[0]->data, 0, (size_t)outputs[0]->size * sizeof(ELEMENT));                   \
      read_walk(words + 3, &job.kept);                                                                         \
      context->parallel_for(context, job.kept.count, GRAIN, name##_scatter, &job);                             \
    }                                                                                                          \
    return TF_OK;                                                                                              \
  }

EINSUM(float32, float, float, AS_IT_IS, ADD, AS_IT_IS, gemm_float32)
EINSUM(float64, double, double, AS_IT_IS, ADD, AS_IT_IS, gemm_float64)
EINSUM(float16, tf_float16, float, FROM_FLOAT16, ADD, tf_float16_from_float32, gemm_float32)
EINSUM(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, ADD, tf_bfloat16_from_float32, gemm_float32)
EINSUM(int32, uint32_t, uint32_t, AS_IT_IS, ADD, AS_IT_IS, gemm_int32)
EINSUM(int64, uint64_t, uint64_t, AS_IT_IS, ADD, AS_IT_IS, gemm_int64)
EINSUM(complex64, tf_complex64, tf_complex64, AS_IT_IS, tf_complex64_add, AS_IT_IS, gemm_complex64)
EINSUM(complex128, tf_complex128, tf_complex128, AS_IT_IS, tf_complex128_add, AS_IT_IS, gemm_complex128)

TF_TABLE(linalg_einsum) = {
  TF_ENTRY(einsum_float32), TF_ENTRY(einsum_float64), TF_ENTRY(einsum_float16),   TF_ENTRY(einsum_bfloat16),
  TF_ENTRY(einsum_int32),   TF_ENTRY(einsum_int64),   TF_ENTRY(einsum_complex64), TF_ENTRY(einsum_complex128), TF_END,
};
