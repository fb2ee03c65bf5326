/* Normal numbers between bounds by rejection (Robert, Statistics and Computing 5, 1995), in the arithmetic of the dtype
 * itself: every operation on float16 is rounded. Batches take blocks one after another from one sequence. */
#include <math.h>

#include "common/half.h"
#include "fill.h"

enum { BAD_BOUNDS = 2, NOTHING_ACCEPTED = 3, MAX_ITERATIONS = 1000, MOST_CANDIDATES = 4 };


#define SAME(x) (x)
#define HALF_ROUND(x) tf_float32_from_float16(tf_float16_from_float32(x))
#define UNIFORM16(x, i) ((float)(int32_t)((x)[i] & 0x3ffu) * 0x1p-10f)
#define UNIFORM32(x, i) uniform_float32((x)[i])
#define UNIFORM64(x, i) uniform_float64((x)[2 * (i)], (x)[2 * (i) + 1])

/* A pair of normals of two uniforms. */
static inline void pair_float32(const uint32_t *x, int i, float *out) {
  const float u = uniform_float32(x[2 * i]), least = 1.0e-7f;
  const float angle = (float)(6.283185307179586 * (double)uniform_float32(x[2 * i + 1]));
  const float radius = sqrtf(-2.0f * logf(u < least ? least : u));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}

static inline void pair_float64(const uint32_t *x, int i, double *out) {
  const double u = UNIFORM64(x, 2 * i), angle = 6.283185307179586 * UNIFORM64(x, 2 * i + 1);
  const double radius = sqrt(-2.0 * log(u < 1.0e-7 ? 1.0e-7 : u));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

/* real: type of the arithmetic; R rounds to the dtype; UNIFORM and pair make numbers of a block; group: how many. */
#define BOUNDED(name, type, real, R, load, store, UNIFORM, pair, group, f)                                         \
  /* Standard normals in [low, high], where low is finite; false if none is accepted. */                           \
  static int name##_batch(const philox *g, uint64_t *block, real low, real high, real mean, real deviation,        \
                          type *out, int64_t count, int64_t step) {                                                \
    const real root = R(sqrt##f(R(R(low * low) + 4)));                                                             \
    const real power = R(exp##f(R((real)0.5 + R(R(low * R(low - root)) / 4))));                                    \
    const real cutoff = R(R(2 * power) / R(low + root)), edge = R((real)1.3), span = R(high - low);                \
    const int normal = (low < -edge && high >= 0) || (high > edge && low <= 0), uniform = span < cutoff;           \
    const real factor = low < 0 ? 0 : R(low * low), alpha = R(R(low + root) / 2);                                  \
    int64_t filled = 0, rejected = 0;                                                                              \
    while (filled < count) {                                                                                       \
      uint32_t x[4], y[4];                                                                                         \
      real values[MOST_CANDIDATES];                                                                                \
      int accepted[MOST_CANDIDATES], candidates = group;                                                           \
      philox_block(g, (*block)++, x);                                                                              \
      if (normal) {                                                                                                \
        for (int i = 0; i < group / 2; i++) pair(x, i, values + 2 * i);                                            \
        for (int i = 0; i < group; i++) {                                                                          \
          values[i] = R(values[i]);                                                                                \
          accepted[i] = values[i] >= low && values[i] <= high;                                                     \
        }                                                                                                          \
      } else if (uniform) {                                                                                        \
        philox_block(g, (*block)++, y);                                                                            \
        for (int i = 0; i < group; i++) {                                                                          \
          const real z = values[i] = R(R(UNIFORM(x, i) * span) + low);                                             \
          accepted[i] = UNIFORM(y, i) <= R(exp##f(R(R(factor - R(z * z)) / 2)));                                   \
        }                                                                                                          \
      } else {                                                                                                     \
        candidates = group / 2;                                                                                    \
        for (int i = 0; i < group / 2; i++) {                                                                      \
          const real z = values[i] = R(R(-R(log##f(UNIFORM(x, 2 * i))) / alpha) + low);                            \
          const real d = low < alpha ? R(alpha - z) : R(low - alpha);                                              \
          accepted[i] = UNIFORM(x, 2 * i + 1) <= R(exp##f(R(-R(d * d) / 2))) && z < high;                          \
        }                                                                                                          \
      }                                                                                                            \
      for (int i = 0; i < candidates && filled < count; i++) {                                                     \
        if (accepted[i]) {                                                                                         \
          out[filled++ * step] = store(R(R(values[i] * deviation) + mean));                                        \
          rejected = 0;                                                                                            \
        } else if (++rejected >= MAX_ITERATIONS) {                                                                 \
          return 0;                                                                                                \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
    return 1;                                                                                                      \
  }                                                                                                                \
  static inline real name##_parameter(const tf_tensor *const *given, int k, int64_t row, const int64_t *places) {  \
    const tf_tensor *x = given[k];                                                                                 \
    return load(((const type *)x->data)[places ? places[4 * row + k] : row % x->size]);                            \
  }                                                                                                                \
  /* parameters behind those of the stream: number of the input means, which the other three follow; numbers in a  \
   * batch; how far they lie apart; whether the places of the four parameters of each batch follow. Those lie apart \
   * by the number of batches. */                                                                                  \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,              \
                      const int64_t *parameters) {                                                                 \
    const int64_t *own = parameters + PHILOX_PARAMETERS, *places = own[3] ? own + 4 : NULL;                        \
    const tf_tensor *const *given = inputs + own[0];                                                               \
    const int64_t size = outputs[0]->size, batch = own[1], step = own[2];                                          \
    type *out = outputs[0]->data;                                                                                  \
    uint64_t block = 0;                                                                                            \
    philox g;                                                                                                      \
    const int32_t code = philox_open(context, inputs, parameters, &g);                                             \
    if (code) return code;                                                                                         \
    for (int64_t i = 0; i * batch < size; i++) {                                                                   \
      const real mean = name##_parameter(given, 0, i, places);                                                     \
      real deviation = name##_parameter(given, 1, i, places), low = name##_parameter(given, 2, i, places),         \
           high = name##_parameter(given, 3, i, places);                                                           \
      if (!(deviation > 0 && low < high && (isfinite(low) || isfinite(high)))) {                                   \
        return tf_fail(context, TF_INVALID_ARGUMENT, BAD_BOUNDS, i, 0, 0, 0);                                      \
      }                                                                                                            \
      if ((isinf(low) && low < 0) || high < mean) { /* seen from the other side */                                 \
        const real kept = low;                                                                                     \
        low = high;                                                                                                \
        high = kept;                                                                                               \
        deviation = -deviation;                                                                                    \
      }                                                                                                            \
      const int64_t left = size - i * batch;                                                                       \
      if (!name##_batch(&g, &block, R(R(low - mean) / deviation), R(R(high - mean) / deviation), mean, deviation,  \
                        out + (places ? i : i * batch), left < batch ? left : batch, step)) {                      \
        return tf_fail(context, TF_INTERNAL, NOTHING_ACCEPTED, i, 0, 0, 0);                                        \
      }                                                                                                            \
    }                                                                                                              \
    return TF_OK;                                                                                                  \
  }

BOUNDED(random_bounded_float32, float, float, SAME, SAME, SAME, UNIFORM32, pair_float32, 4, f)
BOUNDED(random_bounded_float64, double, double, SAME, SAME, SAME, UNIFORM64, pair_float64, 2, )
BOUNDED(random_bounded_float16, tf_float16, float, HALF_ROUND, tf_float32_from_float16, tf_float16_from_float32,
        UNIFORM16, pair_float32, 4, f)

TF_TABLE(random_bounded) = {
  TF_ENTRY(random_bounded_float32), TF_ENTRY(random_bounded_float64), TF_ENTRY(random_bounded_float16), TF_END,
};
