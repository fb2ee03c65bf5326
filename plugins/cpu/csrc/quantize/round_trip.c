/* QuantizeAndDequantizeV2 to V4: floating numbers rounded to those that integers stand for, and V4's gradient; by the
 * arithmetic of float32, or float64 for its own, in the order of the op's reference: every variant gives the same bits. */
#include "quantize/slices.h"

#include <float.h>
#include <timberframe/math/half.h>

enum { DISORDERED = 1 };

typedef struct round_trip_shape {
  quant_slices slices;
  int64_t bits, is_signed, narrow, given, half_up;
} round_trip_shape;

typedef struct round_trip_job {
  const round_trip_shape *shape;
  const void *x, *gradients, *low, *high, *scale, *step;
  void *out;
} round_trip_job;

#define AS_IT_IS(x) (x)

/* The ranges that are used: `low`, `high`, `scale`, `step` of each slice lie one after the other in the workspace. */
#define RANGES(real, largest)                                                                                         \
  static void scale_##real(const round_trip_shape *s, real *low, real *high, real *scale, real *step) {               \
    const int64_t bits = s->is_signed ? s->bits - 1 : s->bits;                                                        \
    const double whole = ldexp(1.0, (int)bits);                                                                       \
    const real last = (real)(uint64_t)(((uint64_t)1 << bits) - 1);                                                    \
    const real first = s->is_signed ? (real)-whole + (real)s->narrow : 0;                                             \
    const real by_low = first * *low > 0 ? first / *low : largest;                                                    \
    const real by_high = last * *high > 0 ? last / *high : largest;                                                   \
    if (by_low < by_high) {                                                                                           \
      *scale = by_low, *step = *low / first, *high = last * *step;                                                    \
    } else {                                                                                                          \
      *scale = by_high, *step = *high / last, *low = first * *step;                                                   \
    }                                                                                                                 \
  }
RANGES(float, FLT_MAX)
RANGES(double, DBL_MAX)

#define KERNEL(name, type, real, load, store, floor_, rint_)                                                          \
  static void fill_##name(void *argument, int64_t first, int64_t last) {                                              \
    const round_trip_job *job = argument;                                                                             \
    const round_trip_shape *s = job->shape;                                                                           \
    const type *x = job->x;                                                                                           \
    type *out = job->out;                                                                                             \
    FOR_EACH_PART(s->slices, first, last, begin, end, c) {                                                            \
      const real scale = ((const real *)job->scale)[c], step = ((const real *)job->step)[c];                          \
      const real low = s->given ? ((const real *)job->low)[c] : (real)-INFINITY;                                      \
      const real high = s->given ? ((const real *)job->high)[c] : (real)INFINITY;                                     \
      if (s->half_up) {                                                                                               \
        for (int64_t i = begin; i < end; i++) {                                                                       \
          const real value = load(x[i]);                                                                              \
          out[i] = store(floor_(BETWEEN(value, low, high) * scale + (real)0.5) * step);                               \
        }                                                                                                             \
      } else {                                                                                                        \
        for (int64_t i = begin; i < end; i++) {                                                                       \
          const real value = load(x[i]);                                                                              \
          out[i] = store(rint_(BETWEEN(value, low, high) * scale) * step);                                            \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static void find_##name(const round_trip_shape *s, const type *x, int64_t size, real *low, real *high) {            \
    for (int64_t c = 0; c < s->slices.count; c++) low[c] = INFINITY, high[c] = -INFINITY;                             \
    FOR_EACH_PART(s->slices, 0, size, begin, end, c) {                                                                \
      for (int64_t i = begin; i < end; i++) {                                                                         \
        const real value = load(x[i]);                                                                                \
        low[c] = value >= low[c] || low[c] != low[c] ? low[c] : value;                                                \
        high[c] = value <= high[c] || high[c] != high[c] ? high[c] : value;                                           \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t round_trip_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                   const int64_t *parameters) {                                                       \
    const round_trip_shape *s = (const round_trip_shape *)parameters;                                                 \
    const int64_t n = s->slices.count;                                                                                \
    real *low = outputs[1]->data, *high = low + n, *scale = high + n, *step = scale + n;                              \
    if (!s->given) find_##name(s, inputs[0]->data, inputs[0]->size, low, high);                                       \
    for (int64_t c = 0; c < n; c++) {                                                                                 \
      if (s->given) low[c] = load(((const type *)inputs[1]->data)[c]), high[c] = load(((const type *)inputs[2]->data)[c]); \
      if (s->given && low[c] > high[c]) {                                                                             \
        const union { double value; int64_t word; } ends[2] = {{low[c]}, {high[c]}};                                  \
        return tf_fail(context, TF_INVALID_ARGUMENT, DISORDERED, ends[0].word, ends[1].word, 0, 0);                   \
      }                                                                                                               \
      scale_##real(s, low + c, high + c, scale + c, step + c);                                                        \
    }                                                                                                                 \
    round_trip_job job = {s, inputs[0]->data, NULL, low, high, scale, step, outputs[0]->data};                        \
    context->parallel_for(context, inputs[0]->size, ELEMENTS_A_UNIT, fill_##name, &job);                              \
    return TF_OK;                                                                                                     \
  }                                                                                                                   \
  static void pass_##name(void *argument, int64_t first, int64_t last) {                                              \
    const round_trip_job *job = argument;                                                                             \
    const type *x = job->x, *gradients = job->gradients;                                                              \
    type *out = job->out;                                                                                             \
    FOR_EACH_PART(job->shape->slices, first, last, begin, end, c) {                                                   \
      const real low = load(((const type *)job->low)[c]), high = load(((const type *)job->high)[c]);                  \
      for (int64_t i = begin; i < end; i++) {                                                                         \
        out[i] = load(x[i]) >= low && load(x[i]) <= high ? gradients[i] : 0;                                          \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t round_trip_gradient_##name(tf_context *context, const tf_tensor *const *inputs,                      \
                                            tf_tensor *const *outputs, const int64_t *parameters) {                   \
    round_trip_job job = {(const round_trip_shape *)parameters, inputs[1]->data, inputs[0]->data, inputs[2]->data,    \
                          inputs[3]->data, NULL, NULL, outputs[0]->data};                                             \
    for (int32_t end = 1; end <= 2; end++) {                                                                          \
      for (int64_t c = 0; c < outputs[end]->size; c++) ((type *)outputs[end]->data)[c] = 0;                           \
    }                                                                                                                 \
    context->parallel_for(context, inputs[1]->size, ELEMENTS_A_UNIT, pass_##name, &job);                              \
    return TF_OK;                                                                                                     \
  }

KERNEL(float32, float, float, AS_IT_IS, AS_IT_IS, floorf, rintf)
KERNEL(float64, double, double, AS_IT_IS, AS_IT_IS, floor, rint)
KERNEL(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32, floorf, rintf)
KERNEL(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32, floorf, rintf)

#define ENTRIES(name) TF_ENTRY(round_trip_##name), TF_ENTRY(round_trip_gradient_##name)
TF_TABLE(quantize_round_trip) = {ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), TF_END};
