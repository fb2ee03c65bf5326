/* Cross: a x b of vectors of three elements. float16 and bfloat16 are computed in float32, integers wrap. */
#include "common/table.h"
#include "reduce/elements.h"

enum { GRAIN = 1 << 12 };

typedef struct cross_job {
  const void *a, *b;
  void *out;
} cross_job;

#define CROSS(name, ELEMENT, wide, load, store)                                                                        \
  static void cross_range_##name(void *argument, int64_t begin, int64_t end) {                                         \
    const cross_job *job = argument;                                                                                   \
    for (int64_t i = 3 * begin; i < 3 * end; i += 3) {                                                                 \
      const ELEMENT *a = (const ELEMENT *)job->a + i, *b = (const ELEMENT *)job->b + i;                                \
      ELEMENT *out = (ELEMENT *)job->out + i;                                                                          \
      const wide a0 = load(a[0]), a1 = load(a[1]), a2 = load(a[2]), b0 = load(b[0]), b1 = load(b[1]), b2 = load(b[2]); \
      out[0] = store(a1 * b2 - a2 * b1);                                                                               \
      out[1] = store(a2 * b0 - a0 * b2);                                                                               \
      out[2] = store(a0 * b1 - a1 * b0);                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  /* Parameters: number of vectors. */                                                                                 \
  static int32_t cross_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,          \
                              const int64_t *parameters) {                                                             \
    cross_job job = {inputs[0]->data, inputs[1]->data, outputs[0]->data};                                              \
    context->parallel_for(context, parameters[0], GRAIN, cross_range_##name, &job);                                    \
    return TF_OK;                                                                                                      \
  }

#define TO_BYTE(x) ((uint8_t)(x))
#define TO_SHORT(x) ((uint16_t)(x))

CROSS(float32, float, float, AS_IT_IS, AS_IT_IS)
CROSS(float64, double, double, AS_IT_IS, AS_IT_IS)
CROSS(float16, tf_float16, float, FROM_FLOAT16, tf_float16_from_float32)
CROSS(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, tf_bfloat16_from_float32)
CROSS(int8, uint8_t, unsigned, AS_IT_IS, TO_BYTE)
CROSS(int16, uint16_t, unsigned, AS_IT_IS, TO_SHORT)
CROSS(int32, uint32_t, uint32_t, AS_IT_IS, AS_IT_IS)
CROSS(int64, uint64_t, uint64_t, AS_IT_IS, AS_IT_IS)

TF_TABLE(linalg_cross) = {
  TF_ENTRY(cross_float32), TF_ENTRY(cross_float64), TF_ENTRY(cross_float16), TF_ENTRY(cross_bfloat16),
  TF_ENTRY(cross_int8),    TF_ENTRY(cross_int16),   TF_ENTRY(cross_int32),   TF_ENTRY(cross_int64), TF_END,
};
