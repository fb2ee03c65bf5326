/* Uniform numbers, integers in a range, and integers with every bit random. */
#include "common/half.h"
#include "fill.h"

#define CONVERT(name, type, numbers, expression)                                                                   \
  static inline void name##_convert(const uint32_t *bits, type *out, int64_t count, const int64_t *parameters) {   \
    (void)parameters;                                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                                          \
      const uint32_t *b = bits + i * (numbers);                                                                    \
      out[i] = expression;                                                                                         \
    }                                                                                                              \
  }                                                                                                                \
  FILL(name, type, numbers, name##_convert)

CONVERT(random_uniform_float32, float, 1, uniform_float32(b[0]))
CONVERT(random_uniform_float64, double, 2, uniform_float64(b[0], b[1]))
CONVERT(random_uniform_float16, tf_float16, 1, tf_float16_from_float32(uniform_float16(b[0])))
CONVERT(random_uniform_bfloat16, tf_bfloat16, 1, tf_bfloat16_from_float32(uniform_bfloat16(b[0])))
CONVERT(random_bits_32, uint32_t, 1, b[0])
CONVERT(random_bits_64, uint64_t, 2, b[0] | (uint64_t)b[1] << 32)

/* parameters of the kernels below, after those of the stream: number of the input minval, which maxval follows. */
enum { EMPTY_RANGE = 2 };

static inline void random_range_32_convert(const uint32_t *bits, uint32_t *out, int64_t count,
                                           const int64_t *range) {
  const uint32_t low = (uint32_t)range[0], span = (uint32_t)range[1];
  for (int64_t i = 0; i < count; i++) out[i] = low + bits[i] % span;
}

static inline void random_range_64_convert(const uint32_t *bits, uint64_t *out, int64_t count,
                                           const int64_t *range) {
  const uint64_t low = (uint64_t)range[0], span = (uint64_t)range[1];
  for (int64_t i = 0; i < count; i++) out[i] = low + (bits[2 * i] | (uint64_t)bits[2 * i + 1] << 32) % span;
}

FILL(random_within_32, uint32_t, 1, random_range_32_convert)
FILL(random_within_64, uint64_t, 2, random_range_64_convert)

/* An empty output is not drawn for, so its bounds may be anything. */
#define RANGE(name, fill, type)                                                                                    \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,              \
                      const int64_t *parameters) {                                                                 \
    const int64_t at = parameters[PHILOX_PARAMETERS];                                                              \
    const type low = *(const type *)inputs[at]->data, high = *(const type *)inputs[at + 1]->data;                  \
    if (outputs[0]->size == 0) return TF_OK;                                                                       \
    if (low >= high) {                                                                                             \
      return tf_fail(context, TF_INVALID_ARGUMENT, EMPTY_RANGE, (int64_t)low, (int64_t)high, 0, 0);                \
    }                                                                                                              \
    int64_t own[PHILOX_PARAMETERS + 2];                                                                            \
    memcpy(own, parameters, PHILOX_PARAMETERS * sizeof *own);                                                      \
    own[PHILOX_PARAMETERS] = (int64_t)low;                                                                         \
    own[PHILOX_PARAMETERS + 1] = (int64_t)((uint64_t)high - (uint64_t)low);                                        \
    return fill(context, inputs, outputs, own);                                                                    \
  }

RANGE(random_range_int32, random_within_32, int32_t)
RANGE(random_range_int64, random_within_64, int64_t)
RANGE(random_range_uint32, random_within_32, uint32_t)
RANGE(random_range_uint64, random_within_64, uint64_t)

TF_TABLE(random_uniform) = {
  TF_ENTRY(random_uniform_float32), TF_ENTRY(random_uniform_float64), TF_ENTRY(random_uniform_float16),
  TF_ENTRY(random_uniform_bfloat16), TF_ENTRY(random_bits_32), TF_ENTRY(random_bits_64),
  TF_ENTRY(random_range_int32), TF_ENTRY(random_range_int64), TF_ENTRY(random_range_uint32),
  TF_ENTRY(random_range_uint64), TF_END,
};
