/* BiasAdd: a vector added along one dimension of a tensor seen as [outer, channels, inner]. */
#include <complex.h>

#include "common/half.h"
#include "common/table.h"

/* Before a loop whose output may be its input but does not overlap it otherwise. */
#if defined(__clang__)
#define SEPARATE _Pragma("clang loop vectorize(assume_safety)")
#else
#define SEPARATE _Pragma("GCC ivdep")
#endif

#define SERIAL_ELEMENTS 32768 /* elements worth a thread */

typedef struct bias_job {
  const void *value, *bias;
  void *output;
  int64_t channels, inner;
} bias_job;

/* Rows are [channels] where inner is 1, else [inner]. The output may be the input. */
#define BIAS(NAME, S, T, LOAD, STORE)                                                                              \
  static void bias_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const bias_job *job = argument;                                                                                \
    int64_t channels = job->channels, inner = job->inner, width = inner == 1 ? channels : inner;                   \
    const S *bias = job->bias;                                                                                     \
    for (int64_t row = begin; row < end; row++) {                                                                  \
      const S *x = (const S *)job->value + row * width;                                                            \
      S *y = (S *)job->output + row * width;                                                                       \
      if (inner == 1) {                                                                                            \
        SEPARATE for (int64_t i = 0; i < width; i++) y[i] = (S)STORE((T)(LOAD(x[i]) + LOAD(bias[i])));             \
      } else {                                                                                                     \
        T b = LOAD(bias[row % channels]);                                                                          \
        SEPARATE for (int64_t i = 0; i < width; i++) y[i] = (S)STORE((T)(LOAD(x[i]) + b));                         \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static int32_t bias_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,       \
                             const int64_t *parameters) {                                                          \
    bias_job job = {inputs[0]->data, inputs[1]->data, outputs[0]->data, parameters[0], parameters[1]};             \
    if (!outputs[0]->size) return TF_OK;                                                                           \
    int64_t width = job.inner == 1 ? job.channels : job.inner;                                                     \
    context->parallel_for(context, outputs[0]->size / width, 1 + SERIAL_ELEMENTS / width, bias_rows_##NAME, &job); \
    return TF_OK;                                                                                                  \
  }
#define SAME(x) (x)

BIAS(uint8, uint8_t, uint8_t, SAME, SAME)
BIAS(uint16, uint16_t, uint16_t, SAME, SAME)
BIAS(uint32, uint32_t, uint32_t, SAME, SAME)
BIAS(uint64, uint64_t, uint64_t, SAME, SAME)
BIAS(float32, float, float, SAME, SAME)
BIAS(float64, double, double, SAME, SAME)
BIAS(complex64, float complex, float complex, SAME, SAME)
BIAS(complex128, double complex, double complex, SAME, SAME)
BIAS(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
BIAS(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

TF_TABLE(conv_bias) = {
  TF_ENTRY(bias_uint8), TF_ENTRY(bias_uint16), TF_ENTRY(bias_uint32), TF_ENTRY(bias_uint64), TF_ENTRY(bias_float16),
  TF_ENTRY(bias_bfloat16), TF_ENTRY(bias_float32), TF_ENTRY(bias_float64), TF_ENTRY(bias_complex64),
  TF_ENTRY(bias_complex128), TF_END,
};
