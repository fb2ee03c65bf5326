/* Standard normals of float32, and of float16 and bfloat16, which are the same numbers rounded. */
#include <timberframe/random/normal_float32.h>

#include "common/half.h"

#define NORMAL_REAL float
#define NORMAL_NUMBERS 1
#define NORMALS normals_float32
static inline void normals_float32(const uint32_t *bits, float *out, int64_t count);

#include "normal.inc"

static inline void normals_float32(const uint32_t *bits, float *out, int64_t count) {
  for (int64_t i = 0; i < count / 2; i++) {
    normal_pair_float32(bits + 2 * i, out + 2 * i);
  }
}

static inline void normal_float32_convert(const uint32_t *bits, float *out, int64_t count, const int64_t *parameters) {
  (void)parameters;
  normals_float32(bits, out, count);
}

#define ROUNDED(type, round)                                                                                       \
  static inline void normal_##type##_convert(const uint32_t *bits, tf_##type *out, int64_t count,                  \
                                             const int64_t *parameters) {                                          \
    float values[CHUNK_NUMBERS];                                                                                   \
    (void)parameters;                                                                                              \
    normals_float32(bits, values, count);                                                                          \
    for (int64_t i = 0; i < count; i++) out[i] = round(values[i]);                                                 \
  }                                                                                                                \
  FILL(random_normal_##type, tf_##type, 1, normal_##type##_convert)                                                \
  TRUNCATED(random_truncated_##type, tf_##type, round)

#define AS_IT_IS(x) (x)
FILL(random_normal_float32, float, 1, normal_float32_convert)
TRUNCATED(random_truncated_float32, float, AS_IT_IS)
ROUNDED(float16, tf_float16_from_float32)
ROUNDED(bfloat16, tf_bfloat16_from_float32)

TF_TABLE(random_normal_float32) = {
  TF_ENTRY(random_normal_float32), TF_ENTRY(random_normal_float16), TF_ENTRY(random_normal_bfloat16),
  TF_ENTRY(random_truncated_float32), TF_ENTRY(random_truncated_float16), TF_ENTRY(random_truncated_bfloat16), TF_END,
};
