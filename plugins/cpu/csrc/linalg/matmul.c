/* MatMul and the BatchMatMuls. float16 and bfloat16 are multiplied as float32, mixed small dtypes in the output's. */
#include "common/table.h"
#include "linalg/gemm.h"

/* Parameters: a gemm_batch. */
#define MATMUL(name, type)                                                                                     \
  static int32_t matmul_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                               const int64_t *parameters) {                                                    \
    return gemm_run(context, (const void *)parameters, gemm_##name, sizeof(type), inputs[0]->data,             \
                    inputs[1]->data, outputs[0]->data);                                                        \
  }
MATMUL(float32, float)
MATMUL(float64, double)
MATMUL(complex64, tf_complex64)
MATMUL(complex128, tf_complex128)
MATMUL(int16, int16_t)
MATMUL(int32, int32_t)
MATMUL(int64, int64_t)

typedef struct convert_job {
  const void *from;
  void *to;
  int32_t dtype;
} convert_job;

static void to_float32(void *argument, int64_t begin, int64_t end) {
  const convert_job *job = argument;
  float *to = job->to;
  switch (job->dtype) {
    case TF_FLOAT16:
      tf_float32_from_float16_n(to + begin, (const tf_float16 *)job->from + begin, end - begin);
      break;
    case TF_BFLOAT16:
      tf_float32_from_bfloat16_n(to + begin, (const tf_bfloat16 *)job->from + begin, end - begin);
      break;
    case TF_INT8:
      for (int64_t i = begin; i < end; i++) to[i] = ((const int8_t *)job->from)[i];
      break;
    default:
      for (int64_t i = begin; i < end; i++) to[i] = ((const uint8_t *)job->from)[i];
  }
}

static void to_int32(void *argument, int64_t begin, int64_t end) {
  const convert_job *job = argument;
  int32_t *to = job->to;
  if (job->dtype == TF_INT8) {
    for (int64_t i = begin; i < end; i++) to[i] = ((const int8_t *)job->from)[i];
  } else {
    for (int64_t i = begin; i < end; i++) to[i] = ((const uint8_t *)job->from)[i];
  }
}

static void from_float32(void *argument, int64_t begin, int64_t end) {
  const convert_job *job = argument;
  const float *from = job->from;
  if (job->dtype == TF_FLOAT16) tf_float16_from_float32_n((tf_float16 *)job->to + begin, from + begin, end - begin);
  else tf_bfloat16_from_float32_n((tf_bfloat16 *)job->to + begin, from + begin, end - begin);
}

enum { CONVERT_GRAIN = 1 << 15 };

/* Converts both inputs side by side into the workspace (4 bytes an element); returns where the second begins. */
static void *convert_inputs(tf_context *context, const tf_tensor *const *inputs, void *workspace, tf_range *convert) {
  char *second = (char *)workspace + (inputs[0]->size * 4 + 63) / 64 * 64;
  convert_job job = {inputs[0]->data, workspace, inputs[0]->dtype};
  context->parallel_for(context, inputs[0]->size, CONVERT_GRAIN, convert, &job);
  job = (convert_job){inputs[1]->data, second, inputs[1]->dtype};
  context->parallel_for(context, inputs[1]->size, CONVERT_GRAIN, convert, &job);
  return second;
}

/* Output float16 or bfloat16. Workspace: both inputs and the output as float32, each rounded up to 64 bytes. */
static int32_t matmul_half(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                           const int64_t *parameters) {
  char *a = outputs[1]->data, *b = convert_inputs(context, inputs, a, to_float32);
  char *c = b + (inputs[1]->size * 4 + 63) / 64 * 64;
  const int32_t code = gemm_run(context, (const void *)parameters, gemm_float32, sizeof(float), a, b, c);
  if (code != TF_OK) return code;
  convert_job job = {c, outputs[0]->data, outputs[0]->dtype};
  context->parallel_for(context, outputs[0]->size, CONVERT_GRAIN, from_float32, &job);
  return TF_OK;
}

/* int8 or uint8 inputs, int32 output. Workspace: both inputs as int32, each rounded up to 64 bytes. */
static int32_t matmul_bytes(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            const int64_t *parameters) {
  char *a = outputs[1]->data, *b = convert_inputs(context, inputs, a, to_int32);
  return gemm_run(context, (const void *)parameters, gemm_int32, sizeof(int32_t), a, b, outputs[0]->data);
}

TF_TABLE(linalg_matmul) = {
  TF_ENTRY(matmul_float32), TF_ENTRY(matmul_float64), TF_ENTRY(matmul_complex64), TF_ENTRY(matmul_complex128),
  TF_ENTRY(matmul_int16),   TF_ENTRY(matmul_int32),   TF_ENTRY(matmul_int64),     TF_ENTRY(matmul_half),
  TF_ENTRY(matmul_bytes),   TF_END,
};
