/* QuantizeV2: floating numbers as integers, and the ranges that are used, by float32's arithmetic in the order of the op's
 * reference; so every variant gives the same bits. */
#include "quantize/slices.h"

#include <float.h>

enum { MIN_COMBINED, MIN_FIRST, SCALED };
enum { DISORDERED = 1 };

typedef struct quantize_shape {
  quant_slices slices;
  int64_t mode, to_even, narrow;
  double ensured; /* the part of its largest end that a range is wide at least */
} quantize_shape;

typedef struct integer_range {
  float least, most; /* most: the largest float32 that is one of the integers */
  double steps;      /* the distance of the least and the greatest */
} integer_range;

typedef struct quantize_job {
  const quantize_shape *shape;
  integer_range integers;
  const float *x, *low, *high, *scale;
  void *out;
} quantize_job;

static void scale_around_zero(const quantize_shape *s, const integer_range *integers, float *low, float *high,
                              float *scale) {
  const float first = integers->least + (float)s->narrow, last = (float)(integers->steps + (double)integers->least);
  const float by_low = first * *low > 0 ? first / *low : FLT_MAX, by_high = last * *high > 0 ? last / *high : FLT_MAX;
  *scale = by_high < by_low ? by_high : by_low;
  *low = first / *scale, *high = last / *scale;
}

/* Returns the first slice whose ends are in the wrong order, -1 where there is none. */
static int64_t find_ranges(const quantize_shape *s, const integer_range *integers, const float *min, const float *max,
                           float *low, float *high, float *scale) {
  for (int64_t c = 0; c < s->slices.count; c++) {
    if (max[c] < min[c]) return c;
    const float a = fabsf(min[c]), b = fabsf(max[c]), largest = a > b ? a : b;
    const float least = (largest > 1 ? largest : 1) * (float)s->ensured;
    low[c] = min[c] > 0 ? 0 : min[c];
    const float wide = low[c] + least, end = max[c] < wide ? wide : max[c];
    high[c] = end < 0 ? 0 : end;
    if (s->mode == SCALED) scale_around_zero(s, integers, low + c, high + c, scale + c);
    else scale[c] = (float)integers->steps / (high[c] - low[c]);
  }
  return -1;
}

#define STORE(value)                                                      \
  const float found = (value);                                            \
  const float enough = found >= least ? found : least; /* NaN is least */ \
  out[i] = (element)(int32_t)(enough < most ? enough : most)

/* One loop for each way to round, so that it has no branch. */
#define KERNEL(name, type, lowest, highest, most_float)                                                        \
  static void fill_##name(void *argument, int64_t first, int64_t last) {                                             \
    typedef type element;                                                                                            \
    const quantize_job *job = argument;                                                                              \
    const quantize_shape *s = job->shape;                                                                            \
    const float least = job->integers.least, most = job->integers.most;                                              \
    const float half = (float)((job->integers.steps + 1) / 2);                                                       \
    const float *x = job->x;                                                                                         \
    type *out = job->out;                                                                                            \
    FOR_EACH_PART(s->slices, first, last, begin, end, c) {                                                           \
      const float low = job->low[c], high = job->high[c], scale = job->scale[c];                                     \
      if (s->mode == MIN_FIRST) {                                                                                    \
        const float moved = round_away(low * scale) - least;                                                         \
        for (int64_t i = begin; i < end; i++) { STORE(round_away(x[i] * scale) - moved); }                           \
      } else if (s->mode == SCALED && s->to_even) {                                                                  \
        for (int64_t i = begin; i < end; i++) { STORE(rintf(BETWEEN(x[i], low, high) * scale)); }                    \
      } else if (s->mode == SCALED) {                                                                                \
        for (int64_t i = begin; i < end; i++) { STORE(round_away(BETWEEN(x[i], low, high) * scale)); }               \
      } else if (least == 0) {                                                                                       \
        for (int64_t i = begin; i < end; i++) { STORE(floorf((BETWEEN(x[i], low, high) - low) * scale + 0.5f)); }    \
      } else {                                                                                                       \
        for (int64_t i = begin; i < end; i++) { STORE(round_away((BETWEEN(x[i], low, high) - low) * scale - half)); } \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  static int32_t quantize_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,     \
                                 const int64_t *parameters) {                                                        \
    return quantize_all(context, inputs, outputs, (const quantize_shape *)parameters,                                \
                        (integer_range){lowest, most_float, (double)(highest) - (double)(lowest)}, fill_##name);     \
  }

static int32_t quantize_all(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            const quantize_shape *s, integer_range integers, tf_range *fill) {
  const float *min = inputs[1]->data, *max = inputs[2]->data;
  float *low = outputs[1]->data, *high = outputs[2]->data, *scale = outputs[3]->data;
  const int64_t wrong = find_ranges(s, &integers, min, max, low, high, scale);
  if (wrong >= 0) {
    const union { double value; int64_t word; } ends[2] = {{min[wrong]}, {max[wrong]}};
    return tf_fail(context, TF_INVALID_ARGUMENT, DISORDERED, ends[0].word, ends[1].word, 0, 0);
  }
  quantize_job job = {s, integers, inputs[0]->data, low, high, scale, outputs[0]->data};
  context->parallel_for(context, inputs[0]->size, ELEMENTS_A_UNIT, fill, &job);
  return TF_OK;
}

KERNEL(int8, int8_t, INT8_MIN, INT8_MAX, INT8_MAX)
KERNEL(uint8, uint8_t, 0, UINT8_MAX, UINT8_MAX)
KERNEL(int16, int16_t, INT16_MIN, INT16_MAX, INT16_MAX)
KERNEL(uint16, uint16_t, 0, UINT16_MAX, UINT16_MAX)
KERNEL(int32, int32_t, INT32_MIN, INT32_MAX, 2147483520.0f)

TF_TABLE(quantize_integers) = {
  TF_ENTRY(quantize_int8), TF_ENTRY(quantize_uint8), TF_ENTRY(quantize_int16), TF_ENTRY(quantize_uint16),
  TF_ENTRY(quantize_int32), TF_END,
};
