/* Conversions between dtypes. parameters: grain, bytes of an input element, bytes of an output element. */
#include "common/streaming.h"

#include "cast/stages.h"

enum { STAGES = 4, BLOCK = 512, WIDEST = 16 };

typedef struct cast_job {
  cast_stage *const *stages; /* ends with NULL */
  const char *from;
  char *to;
  int64_t in_size, out_size;
} cast_job;

/* Several stages run one after the other on blocks that stay in the first cache. */
static void cast_range(void *argument, int64_t begin, int64_t end) {
  const cast_job *job = argument;
  if (!job->stages[1]) {
    job->stages[0](end - begin, job->from + begin * job->in_size, job->to + begin * job->out_size);
    return;
  }
  _Alignas(TF_ALIGNMENT) char buffers[2][BLOCK * WIDEST];
  for (; begin < end; begin += BLOCK) {
    const int64_t count = end - begin < BLOCK ? end - begin : BLOCK;
    const void *from = job->from + begin * job->in_size;
    for (int32_t s = 0; job->stages[s]; s++) {
      void *to = job->stages[s + 1] ? buffers[s & 1] : job->to + begin * job->out_size;
      job->stages[s](count, from, to);
      from = to;
    }
  }
}

static int32_t cast_by(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                       const int64_t *parameters, cast_stage *const *stages) {
  cast_job job = {stages, inputs[0]->data, outputs[0]->data, parameters[1], parameters[2]};
  const int64_t count = outputs[0]->size;
  if (count > parameters[0]) {
    context->parallel_for(context, count, parameters[0], cast_range, &job);
  } else {
    cast_range(&job, 0, count);
  }
  return TF_OK;
}

/* X(name, stages...). Signed integers come as unsigned ones where their bits decide; a bool is a uint8 of 0 or 1. */
#define DIRECT_INTEGERS(X)                                                                                           \
  X(int8_uint16, int8_uint16) X(int8_uint32, int8_uint32) X(int8_uint64, int8_uint64)                                \
  X(int16_uint32, int16_uint32) X(int16_uint64, int16_uint64) X(int32_uint64, int32_uint64)                          \
  X(uint8_uint16, uint8_uint16) X(uint8_uint32, uint8_uint32) X(uint8_uint64, uint8_uint64)                          \
  X(uint16_uint8, uint16_uint8) X(uint16_uint32, uint16_uint32) X(uint16_uint64, uint16_uint64)                      \
  X(uint32_uint8, uint32_uint8) X(uint32_uint16, uint32_uint16) X(uint32_uint64, uint32_uint64)                      \
  X(uint64_uint8, uint64_uint8) X(uint64_uint16, uint64_uint16) X(uint64_uint32, uint64_uint32)                      \
  X(uint8_bool, uint8_bool) X(uint16_bool, uint16_bool) X(uint32_bool, uint32_bool) X(uint64_bool, uint64_bool)
#define FROM_INTEGER(X, type)                                                                                        \
  X(type##_float32, type##_float32)                                                                                  \
  X(type##_float64, type##_float64)                                                                                  \
  X(type##_float16, type##_float32, float32_float16)                                                                 \
  X(type##_bfloat16, type##_float32, float32_bfloat16)                                                               \
  X(type##_complex64, type##_float32, float32_complex64)                                                             \
  X(type##_complex128, type##_float64, float64_complex128)
#define FROM_INTEGERS(X)                                                                                             \
  FROM_INTEGER(X, int8) FROM_INTEGER(X, int16) FROM_INTEGER(X, int32) FROM_INTEGER(X, int64)                         \
  FROM_INTEGER(X, uint8) FROM_INTEGER(X, uint16) FROM_INTEGER(X, uint32) FROM_INTEGER(X, uint64)
/* To integers and bool, after what makes a float32 or float64 of the input. */
#define TO_INTEGERS(X, type, real, ...)                                                                              \
  X(type##_uint8, __VA_ARGS__ real##_uint8)                                                                          \
  X(type##_uint16, __VA_ARGS__ real##_uint16)                                                                        \
  X(type##_uint32, __VA_ARGS__ real##_uint32)                                                                        \
  X(type##_uint64, __VA_ARGS__ real##_uint64)                                                                        \
  X(type##_int32, __VA_ARGS__ real##_int32)                                                                          \
  X(type##_int64, __VA_ARGS__ real##_int64)                                                                          \
  X(type##_bool, __VA_ARGS__ real##_bool)
#define COMMA ,
#define FROM_FLOATS(X)                                                                                               \
  TO_INTEGERS(X, float32, float32, )                                                                                 \
  TO_INTEGERS(X, float64, float64, )                                                                                 \
  TO_INTEGERS(X, float16, float32, float16_float32 COMMA)                                                            \
  TO_INTEGERS(X, bfloat16, float32, bfloat16_float32 COMMA)                                                          \
  TO_INTEGERS(X, complex64, float32, complex64_float32 COMMA)                                                        \
  TO_INTEGERS(X, complex128, float64, complex128_float64 COMMA)                                                      \
  X(float32_float64, float32_float64)                                                                                \
  X(float32_float16, float32_float16)                                                                                \
  X(float32_bfloat16, float32_bfloat16)                                                                              \
  X(float32_complex64, float32_complex64)                                                                            \
  X(float32_complex128, float32_float64, float64_complex128)                                                         \
  X(float64_float32, float64_float32)                                                                                \
  X(float64_float16, float64_odd, float32_float16)                                                                   \
  X(float64_bfloat16, float64_odd, float32_bfloat16)                                                                 \
  X(float64_complex64, float64_float32, float32_complex64)                                                           \
  X(float64_complex128, float64_complex128)                                                                          \
  X(float16_float32, float16_float32)                                                                                \
  X(float16_float64, float16_float32, float32_float64)                                                               \
  X(float16_bfloat16, float16_float32, float32_bfloat16)                                                             \
  X(float16_complex64, float16_float32, float32_complex64)                                                           \
  X(float16_complex128, float16_float32, float32_float64, float64_complex128)                                        \
  X(bfloat16_float32, bfloat16_float32)                                                                              \
  X(bfloat16_float64, bfloat16_float32, float32_float64)                                                             \
  X(bfloat16_float16, bfloat16_float32, float32_float16)                                                             \
  X(bfloat16_complex64, bfloat16_float32, float32_complex64)                                                         \
  X(bfloat16_complex128, bfloat16_float32, float32_float64, float64_complex128)                                      \
  X(complex64_float32, complex64_float32)                                                                            \
  X(complex64_float64, complex64_float32, float32_float64)                                                           \
  X(complex64_float16, complex64_float32, float32_float16)                                                           \
  X(complex64_bfloat16, complex64_float32, float32_bfloat16)                                                         \
  X(complex64_complex128, complex64_complex128)                                                                      \
  X(complex128_float32, complex128_float64, float64_float32)                                                         \
  X(complex128_float64, complex128_float64)                                                                          \
  X(complex128_float16, complex128_float64, float64_odd, float32_float16)                                            \
  X(complex128_bfloat16, complex128_float64, float64_odd, float32_bfloat16)                                          \
  X(complex128_complex64, complex128_complex64)                                                                      \
  X(truncate_float32_float16, cut_float32_13, float32_float16)                                                       \
  X(truncate_float32_bfloat16, cut_float32_16, float32_bfloat16)                                                     \
  X(truncate_float64_float32, cut_float64_29, float64_float32)                                                       \
  X(truncate_float64_float16, cut_float64_42, float64_odd, float32_float16)                                          \
  X(truncate_float64_bfloat16, cut_float64_45, float64_odd, float32_bfloat16)

#define DEFINE(name, ...)                                                                                            \
  static int32_t cast_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,         \
                             const int64_t *parameters) {                                                            \
    static cast_stage *const stages[STAGES] = {__VA_ARGS__};                                                         \
    return cast_by(context, inputs, outputs, parameters, stages);                                                    \
  }
#define LIST(name, ...) TF_ENTRY(cast_##name),

DIRECT_INTEGERS(DEFINE)
FROM_INTEGERS(DEFINE)
FROM_FLOATS(DEFINE)

TF_TABLE(cast) = {DIRECT_INTEGERS(LIST) FROM_INTEGERS(LIST) FROM_FLOATS(LIST) TF_END};
