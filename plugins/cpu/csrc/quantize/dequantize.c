/* Dequantize: integers as the floating numbers that they stand for, by float32's arithmetic in the order of the op's reference. */
#include "quantize/slices.h"

#include <timberframe/math/half.h>

enum { MIN_COMBINED, MIN_FIRST, SCALED };

typedef struct dequantize_shape {
  quant_slices slices;
  int64_t mode, narrow;
} dequantize_shape;

/* A number is (integer + before) * scale + after. */
typedef struct dequantize_job {
  const dequantize_shape *shape;
  const void *x;
  const float *scale, *after;
  float before;
  void *out;
} dequantize_job;

static void find_scales(const dequantize_shape *s, float least, float most, const float *low, const float *high,
                        float *scale, float *after) {
  for (int64_t c = 0; c < s->slices.count; c++) {
    const float step = (high[c] - low[c]) / (most - least);
    if (s->mode == SCALED) {
      const float by_high = high[c] / most, by_low = low[c] / (least + (float)s->narrow);
      scale[c] = least == 0 || !(by_low > by_high) ? by_high : by_low, after[c] = 0;
    } else if (s->mode == MIN_COMBINED || low[c] == high[c]) {
      scale[c] = step, after[c] = low[c];
    } else {
      scale[c] = step, after[c] = rintf(low[c] / step) * step;
    }
  }
}

#define FILL(name, type, suffix, out_type, store)                                                       \
  static void fill_##name##suffix(void *argument, int64_t first, int64_t last) {                        \
    const dequantize_job *job = argument;                                                               \
    const type *x = job->x;                                                                             \
    out_type *out = job->out;                                                                           \
    const float before = job->before;                                                                   \
    FOR_EACH_PART(job->shape->slices, first, last, begin, end, c) {                                     \
      const float scale = job->scale[c], after = job->after[c];                                         \
      for (int64_t i = begin; i < end; i++) out[i] = store(((float)x[i] + before) * scale + after);     \
    }                                                                                                   \
  }                                                                                                     \
  static int32_t dequantize_##name##suffix(tf_context *context, const tf_tensor *const *inputs,         \
                                           tf_tensor *const *outputs, const int64_t *parameters) {      \
    return dequantize_all(context, inputs, outputs, (const dequantize_shape *)parameters, LEAST_##name, \
                          MOST_##name, fill_##name##suffix);                                            \
  }
#define KERNELS(name, type)                \
  FILL(name, type, , float, AS_IT_IS)      \
  FILL(name, type, _bfloat16, tf_bfloat16, tf_bfloat16_from_float32)
#define AS_IT_IS(x) (x)
#define LEAST_int8 INT8_MIN
#define LEAST_uint8 0
#define LEAST_int16 INT16_MIN
#define LEAST_uint16 0
#define LEAST_int32 INT32_MIN
#define MOST_int8 INT8_MAX
#define MOST_uint8 UINT8_MAX
#define MOST_int16 INT16_MAX
#define MOST_uint16 UINT16_MAX
#define MOST_int32 (float)INT32_MAX

static int32_t dequantize_all(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const dequantize_shape *s, float least, float most, tf_range *fill) {
  float *scale = outputs[1]->data, *after = scale + s->slices.count;
  find_scales(s, least, most, inputs[1]->data, inputs[2]->data, scale, after);
  const float half = least == 0 ? 0 : (float)(((double)most - (double)least + 1) / 2);
  dequantize_job job = {s, inputs[0]->data, scale, after, 0, outputs[0]->data};
  if (s->mode == MIN_COMBINED) job.before = half;
  if (s->mode == MIN_FIRST) job.before = -least;
  context->parallel_for(context, inputs[0]->size, ELEMENTS_A_UNIT, fill, &job);
  return TF_OK;
}

KERNELS(int8, int8_t)
KERNELS(uint8, uint8_t)
KERNELS(int16, int16_t)
KERNELS(uint16, uint16_t)
KERNELS(int32, int32_t)

#define ENTRIES(name) TF_ENTRY(dequantize_##name), TF_ENTRY(dequantize_##name##_bfloat16)
TF_TABLE(quantize_back) = {ENTRIES(int8), ENTRIES(uint8), ENTRIES(int16), ENTRIES(uint16), ENTRIES(int32), TF_END};
