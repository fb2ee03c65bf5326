/* Normal numbers between bounds. */
#include <math.h>

#include <timberframe/random/bounded.h>

#include "common/half.h"
#include "fill.h"

enum { BAD_BOUNDS = 2, NOTHING_ACCEPTED = 3 };

#define SAME(x) (x)
#define HALF_ROUND(x) tf_float32_from_float16(tf_float16_from_float32(x))
#define STORE(out, i, value) (out)[i] = (value)
#define STORE_HALF(out, i, value) (out)[i] = tf_float16_from_float32(value)

/* A pair of normals of two uniforms. */
static inline void pair_float32(const uint32_t *x, int i, float *out) {
  const float u = uniform_float32(x[2 * i]), least = 1.0e-7f;
  const float angle = (float)(6.283185307179586 * (double)uniform_float32(x[2 * i + 1]));
  const float radius = sqrtf(-2.0f * logf(u < least ? least : u));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}

static inline void pair_float64(const uint32_t *x, int i, double *out) {
  const double u = BOUNDED_UNIFORM64(x, 2 * i), angle = 6.283185307179586 * BOUNDED_UNIFORM64(x, 2 * i + 1);
  const double radius = sqrt(-2.0 * log(u < 1.0e-7 ? 1.0e-7 : u));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

BOUNDED_BATCH(random_bounded_float32, float, float, SAME, STORE, BOUNDED_UNIFORM32, pair_float32, 4,
              sqrtf, expf, logf, )
BOUNDED_BATCH(random_bounded_float64, double, double, SAME, STORE, BOUNDED_UNIFORM64, pair_float64, 2, sqrt, exp, log, )
BOUNDED_BATCH(random_bounded_float16, tf_float16, float, HALF_ROUND, STORE_HALF, BOUNDED_UNIFORM16, pair_float32, 4,
              sqrtf, expf, logf, )

/* The kernel around it; load takes an element to the arithmetic. */
#define BOUNDED(name, type, real, R, load)                                                                           \
  static inline real name##_parameter(const tf_tensor *const *given, int k, int64_t row, const int64_t *indices) {   \
    const tf_tensor *x = given[k];                                                                                   \
    return load(((const type *)x->data)[indices ? indices[4 * row + k] : row % x->size]);                            \
  }                                                                                                                  \
  /* parameters after those of the stream: number of the input means, which the other three follow; numbers in a     \
   * batch; how far they lie apart; whether the indices of the four parameters of each batch follow. Those lie apart \
   * by the number of batches. */                                                                                    \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,                \
                      const int64_t *parameters) {                                                                   \
    const int64_t *own = parameters + PHILOX_PARAMETERS, *indices = own[3] ? own + 4 : NULL;                         \
    const tf_tensor *const *given = inputs + own[0];                                                                 \
    const int64_t size = outputs[0]->size, batch = own[1], step = own[2];                                            \
    type *out = outputs[0]->data;                                                                                    \
    uint64_t block = 0;                                                                                              \
    philox g;                                                                                                        \
    const int32_t code = philox_open(context, inputs, parameters, &g);                                               \
    if (code) return code;                                                                                           \
    for (int64_t i = 0; i * batch < size; i++) {                                                                     \
      const real mean = name##_parameter(given, 0, i, indices);                                                      \
      real deviation = name##_parameter(given, 1, i, indices), low = name##_parameter(given, 2, i, indices),         \
           high = name##_parameter(given, 3, i, indices);                                                            \
      if (!(deviation > 0 && low < high && (isfinite(low) || isfinite(high)))) {                                     \
        return tf_fail(context, TF_INVALID_ARGUMENT, BAD_BOUNDS, i, 0, 0, 0);                                        \
      }                                                                                                              \
      if ((isinf(low) && low < 0) || high < mean) { /* seen from the other side */                                   \
        const real kept = low;                                                                                       \
        low = high;                                                                                                  \
        high = kept;                                                                                                 \
        deviation = -deviation;                                                                                      \
      }                                                                                                              \
      const int64_t left = size - i * batch;                                                                         \
      if (!name##_batch(&g, &block, R(R(low - mean) / deviation), R(R(high - mean) / deviation), mean, deviation,    \
                        out + (indices ? i : i * batch), left < batch ? left : batch, step)) {                       \
        return tf_fail(context, TF_INTERNAL, NOTHING_ACCEPTED, i, 0, 0, 0);                                          \
      }                                                                                                              \
    }                                                                                                                \
    return TF_OK;                                                                                                    \
  }

BOUNDED(random_bounded_float32, float, float, SAME, SAME)
BOUNDED(random_bounded_float64, double, double, SAME, SAME)
BOUNDED(random_bounded_float16, tf_float16, float, HALF_ROUND, tf_float32_from_float16)

TF_TABLE(random_bounded) = {
  TF_ENTRY(random_bounded_float32), TF_ENTRY(random_bounded_float64), TF_ENTRY(random_bounded_float16), TF_END,
};
