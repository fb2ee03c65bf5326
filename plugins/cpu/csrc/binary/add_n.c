/* Sums of many tensors of one shape. parameters: number of tensors, grain. */
#include "common/half.h"
#include "common/table.h"

enum { CHUNK = 256 };

typedef struct add_n_job {
  const tf_tensor *const *inputs;
  void *out;
  int64_t terms;
} add_n_job;

#define SAME(x) (x)

/* A chunk is summed up apart from the output, which may be one of the inputs; ACC is what sums are formed in.
 * Chunks are short, so that each term is read as one long stream, which the processor fetches ahead. */
#define ADD_N(type, T, ACC, READ, WRITE)                                                                             \
  static void add_n_range_##type(void *argument, int64_t begin, int64_t end) {                                       \
    const add_n_job *job = argument;                                                                                 \
    T *out = job->out;                                                                                               \
    ACC sum[CHUNK];                                                                                                  \
    for (; begin < end; begin += CHUNK) {                                                                            \
      const int64_t size = end - begin < CHUNK ? end - begin : CHUNK;                                                \
      const T *term = (const T *)job->inputs[0]->data + begin;                                                       \
      int64_t k = 1;                                                                                                 \
      for (int64_t i = 0; i < size; i++) sum[i] = READ(term[i]);                                                     \
      for (; k + 3 <= job->terms; k += 3) {                                                                          \
        const T *a = (const T *)job->inputs[k]->data + begin;                                                        \
        const T *b = (const T *)job->inputs[k + 1]->data + begin;                                                    \
        const T *c = (const T *)job->inputs[k + 2]->data + begin;                                                    \
        for (int64_t i = 0; i < size; i++) sum[i] = (ACC)(sum[i] + READ(a[i]) + READ(b[i]) + READ(c[i]));            \
      }                                                                                                              \
      for (; k < job->terms; k++) {                                                                                  \
        term = (const T *)job->inputs[k]->data + begin;                                                              \
        for (int64_t i = 0; i < size; i++) sum[i] += READ(term[i]);                                                  \
      }                                                                                                              \
      for (int64_t i = 0; i < size; i++) out[begin + i] = WRITE(sum[i]);                                             \
    }                                                                                                                \
  }                                                                                                                  \
  static int32_t add_n_##type(tf_context *context, const tf_tensor *const *inputs,                                   \
                              tf_tensor *const *outputs, const int64_t *parameters) {                                \
    add_n_job job = {inputs, outputs[0]->data, parameters[0]};                                                       \
    const int64_t count = outputs[0]->size;                                                                          \
    if (count > parameters[1]) {                                                                                     \
      context->parallel_for(context, count, parameters[1], add_n_range_##type, &job);                                \
    } else {                                                                                                         \
      add_n_range_##type(&job, 0, count);                                                                            \
    }                                                                                                                \
    return TF_OK;                                                                                                    \
  }

ADD_N(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
ADD_N(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)
ADD_N(float32, float, float, SAME, SAME)
ADD_N(float64, double, double, SAME, SAME)
ADD_N(complex64, float _Complex, float _Complex, SAME, SAME)
ADD_N(complex128, double _Complex, double _Complex, SAME, SAME)
ADD_N(uint8, uint8_t, uint8_t, SAME, SAME)
ADD_N(uint16, uint16_t, uint16_t, SAME, SAME)
ADD_N(uint32, uint32_t, uint32_t, SAME, SAME)
ADD_N(uint64, uint64_t, uint64_t, SAME, SAME)

TF_TABLE(binary_add_n) = {
    TF_ENTRY(add_n_float16),   TF_ENTRY(add_n_bfloat16),   TF_ENTRY(add_n_float32), TF_ENTRY(add_n_float64),
    TF_ENTRY(add_n_complex64), TF_ENTRY(add_n_complex128), TF_ENTRY(add_n_uint8),   TF_ENTRY(add_n_uint16),
    TF_ENTRY(add_n_uint32),    TF_ENTRY(add_n_uint64),     TF_END,
};
