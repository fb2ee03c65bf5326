/* Tensors made of a few numbers: arithmetic sequences, and values that planning has found. */
#include <string.h>

#include "common/half.h"
#include "common/table.h"

static inline float identity_float32(float x) { return x; }
static inline double identity_float64(double x) { return x; }

/* parameters: start, delta (as doubles). Each element is computed by itself, as TensorFlow does: a running sum would
 * gather its rounding errors. float16 and bfloat16 are computed in float32 and rounded once. Indices are 32 bits wide
 * while they fit, since these are converted to floats in vectors. */
#define DEFINE_FLOAT_RANGE(name, type, wide, narrow)                                                            \
  static int32_t range_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)context, (void)inputs;                                                                                \
    wide start = (wide)tf_double(parameters[0]), delta = (wide)tf_double(parameters[1]);                        \
    type *y = outputs[0]->data;                                                                                 \
    int64_t n = outputs[0]->size;                                                                               \
    int32_t near = n < INT32_MAX ? (int32_t)n : INT32_MAX;                                                      \
    for (int32_t i = 0; i < near; i++) y[i] = narrow(start + (wide)i * delta);                                  \
    for (int64_t i = near; i < n; i++) y[i] = narrow(start + (wide)i * delta);                                  \
    return TF_OK;                                                                                               \
  }

DEFINE_FLOAT_RANGE(float16, tf_float16, float, tf_float16_from_float32)
DEFINE_FLOAT_RANGE(bfloat16, tf_bfloat16, float, tf_bfloat16_from_float32)
DEFINE_FLOAT_RANGE(float32, float, float, identity_float32)
DEFINE_FLOAT_RANGE(float64, double, double, identity_float64)

/* parameters: start, delta. Unsigned, since i * delta may leave the type where start + i * delta does not. */
#define DEFINE_INTEGER_RANGE(name, type, unsigned_type)                                                         \
  static int32_t range_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)context, (void)inputs;                                                                                \
    unsigned_type start = (unsigned_type)parameters[0], delta = (unsigned_type)parameters[1];                   \
    type *y = outputs[0]->data;                                                                                 \
    for (int64_t i = 0; i < outputs[0]->size; i++) y[i] = (type)(start + (unsigned_type)i * delta);             \
    return TF_OK;                                                                                               \
  }

DEFINE_INTEGER_RANGE(int32, int32_t, uint32_t)
DEFINE_INTEGER_RANGE(int64, int64_t, uint64_t)

/* Inputs start and stop. The last element is stop itself. */
#define DEFINE_LINSPACE(name, type, wide, widen, narrow)                                                        \
  static int32_t linspace_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                 const int64_t *parameters) {                                                   \
    (void)context, (void)parameters;                                                                            \
    type first, last, *y = outputs[0]->data;                                                                    \
    memcpy(&first, inputs[0]->data, sizeof first);                                                              \
    memcpy(&last, inputs[1]->data, sizeof last);                                                                \
    int64_t n = outputs[0]->size;                                                                               \
    wide start = widen(first), step = n > 1 ? (widen(last) - start) / (wide)(n - 1) : 0;                        \
    int32_t near = n - 1 < INT32_MAX ? (int32_t)(n - 1) : INT32_MAX;                                            \
    for (int32_t i = 0; i < near; i++) y[i] = narrow(start + step * (wide)i);                                   \
    for (int64_t i = near; i < n - 1; i++) y[i] = narrow(start + step * (wide)i);                               \
    y[n - 1] = n > 1 ? last : first;                                                                            \
    return TF_OK;                                                                                               \
  }

DEFINE_LINSPACE(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
DEFINE_LINSPACE(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)
DEFINE_LINSPACE(float32, float, float, identity_float32, identity_float32)
DEFINE_LINSPACE(float64, double, double, identity_float64, identity_float64)

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
