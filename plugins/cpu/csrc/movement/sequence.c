/* Tensors made of a few numbers: arithmetic sequences, and values that planning has found. */
#include <string.h>

#include "common/half.h"
#include "common/table.h"

static inline float identity_float32(float x) { return x; }
static inline double identity_float64(double x) { return x; }

#define GRAIN (1 << 18) /* elements; a cancelled run ends after a part of them */

/* Each element is computed by itself, as TensorFlow does: a running sum would gather its rounding errors. float16 and
 * bfloat16 are computed in float32 and rounded once. Indices are 32 bits wide while they fit, since these are converted to
 * floats in vectors. */
#define DEFINE_SEQUENCE(name, type, wide, narrow)                                                               \
  typedef struct {                                                                                              \
    type *y;                                                                                                    \
    wide start, step;                                                                                           \
  } sequence_##name;                                                                                            \
  static void fill_##name(void *argument, int64_t begin, int64_t end) {                                         \
    const sequence_##name s = *(const sequence_##name *)argument;                                               \
    if (end <= INT32_MAX) {                                                                                     \
      for (int32_t i = (int32_t)begin; i < (int32_t)end; i++) s.y[i] = narrow(s.start + s.step * (wide)i);      \
    } else {                                                                                                    \
      for (int64_t i = begin; i < end; i++) s.y[i] = narrow(s.start + s.step * (wide)i);                        \
    }                                                                                                           \
  }

DEFINE_SEQUENCE(float16, tf_float16, float, tf_float16_from_float32)
DEFINE_SEQUENCE(bfloat16, tf_bfloat16, float, tf_bfloat16_from_float32)
DEFINE_SEQUENCE(float32, float, float, identity_float32)
DEFINE_SEQUENCE(float64, double, double, identity_float64)

/* parameters: start, delta (as doubles). */
#define DEFINE_FLOAT_RANGE(name, wide)                                                                          \
  static int32_t range_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)inputs;                                                                                               \
    sequence_##name s = {outputs[0]->data, (wide)tf_double(parameters[0]), (wide)tf_double(parameters[1])};     \
    context->parallel_for(context, outputs[0]->size, GRAIN, fill_##name, &s);                                   \
    return TF_OK;                                                                                               \
  }

DEFINE_FLOAT_RANGE(float16, float)
DEFINE_FLOAT_RANGE(bfloat16, float)
DEFINE_FLOAT_RANGE(float32, float)
DEFINE_FLOAT_RANGE(float64, double)

/* parameters: start, delta. Unsigned, since i * delta may leave the type where start + i * delta does not. */
#define DEFINE_INTEGER_RANGE(name, type, unsigned_type)                                                         \
  typedef struct {                                                                                              \
    type *y;                                                                                                    \
    unsigned_type start, delta;                                                                                 \
  } sequence_##name;                                                                                            \
  static void fill_##name(void *argument, int64_t begin, int64_t end) {                                         \
    const sequence_##name s = *(const sequence_##name *)argument;                                               \
    for (int64_t i = begin; i < end; i++) s.y[i] = (type)(s.start + (unsigned_type)i * s.delta);                \
  }                                                                                                             \
  static int32_t range_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)inputs;                                                                                               \
    sequence_##name s = {outputs[0]->data, (unsigned_type)parameters[0], (unsigned_type)parameters[1]};         \
    context->parallel_for(context, outputs[0]->size, GRAIN, fill_##name, &s);                                   \
    return TF_OK;                                                                                               \
  }

DEFINE_INTEGER_RANGE(int32, int32_t, uint32_t)
DEFINE_INTEGER_RANGE(int64, int64_t, uint64_t)

/* Inputs start and stop. The first and the last element are start and stop themselves, also where the step is infinite. */
#define DEFINE_LINSPACE(name, type, wide, widen)                                                                \
  static int32_t linspace_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                 const int64_t *parameters) {                                                   \
    (void)parameters;                                                                                           \
    type first, last, *y = outputs[0]->data;                                                                    \
    memcpy(&first, inputs[0]->data, sizeof first);                                                              \
    memcpy(&last, inputs[1]->data, sizeof last);                                                                \
    int64_t n = outputs[0]->size;                                                                               \
    sequence_##name s = {y, widen(first), n > 1 ? (widen(last) - widen(first)) / (wide)(n - 1) : 0};            \
    if (n > 1) context->parallel_for(context, n - 1, GRAIN, fill_##name, &s);                                   \
    y[n - 1] = last;                                                                                            \
    y[0] = first;                                                                                               \
    return TF_OK;                                                                                               \
  }

DEFINE_LINSPACE(float16, tf_float16, float, tf_float32_from_float16)
DEFINE_LINSPACE(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16)
DEFINE_LINSPACE(float32, float, float, identity_float32)
DEFINE_LINSPACE(float64, double, double, identity_float64)

/* parameters: number of outputs, then the elements of all of them, one after the other. */
#define DEFINE_STORE(name, type)                                                                                \
  static int32_t store_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)context, (void)inputs;                                                                                \
    const int64_t *next = parameters + 1;                                                                       \
    for (int64_t k = 0; k < parameters[0]; k++) {                                                               \
      type *y = outputs[k]->data;                                                                               \
      for (int64_t i = 0; i < outputs[k]->size; i++) y[i] = (type)*next++;                                      \
    }                                                                                                           \
    return TF_OK;                                                                                               \
  }

DEFINE_STORE(int32, int32_t)
DEFINE_STORE(int64, int64_t)

TF_TABLE(movement_sequence) = {
  TF_ENTRY(range_float16), TF_ENTRY(range_bfloat16), TF_ENTRY(range_float32), TF_ENTRY(range_float64),
  TF_ENTRY(range_int32), TF_ENTRY(range_int64), TF_ENTRY(linspace_float16), TF_ENTRY(linspace_bfloat16),
  TF_ENTRY(linspace_float32), TF_ENTRY(linspace_float64), TF_ENTRY(store_int32), TF_ENTRY(store_int64), TF_END
};
