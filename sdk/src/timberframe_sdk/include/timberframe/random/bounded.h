/* Normal numbers between bounds by rejection (Robert, Statistics and Computing 5, 1995), in the arithmetic of the dtype
 * itself: every operation on float16 is rounded. Batches take blocks one after another from one sequence. */
#ifndef TIMBERFRAME_RANDOM_BOUNDED_H
#define TIMBERFRAME_RANDOM_BOUNDED_H

#include <timberframe/random/philox.h>
#include <timberframe/random/uniform.h>

#define BOUNDED_ITERATIONS 1000 /* candidates in a row that may be rejected */
#define BOUNDED_CANDIDATES 4

#define BOUNDED_UNIFORM16(x, i) uniform_float16((x)[i])
#define BOUNDED_UNIFORM32(x, i) uniform_float32((x)[i])
#define BOUNDED_UNIFORM64(x, i) uniform_float64((x)[2 * (i)], (x)[2 * (i) + 1])

/* real: type of the arithmetic; R rounds to the dtype; STORE(out, i, value); UNIFORM(x, i) and pair(x, values) make
 * numbers of a block's; group: how many there are; SPACE: address space of the output. */
#define BOUNDED_BATCH(name, type, real, R, STORE, UNIFORM, pair, group, SQRT, EXP, LOG, SPACE)                       \
  /* Standard normals in [low, high], where low is finite; false if none is accepted. */                             \
  static inline int name##_batch(const philox *g, uint64_t *block, real low, real high, real mean, real deviation,   \
                                 SPACE type *out, int64_t count, int64_t step) {                                     \
    const real root = R(SQRT(R(R(low * low) + 4)));                                                                  \
    const real power = R(EXP(R((real)0.5 + R(R(low * R(low - root)) / 4))));                                         \
    const real cutoff = R(R(2 * power) / R(low + root)), edge = R((real)1.3), span = R(high - low);                  \
    const int normal = (low < -edge && high >= 0) || (high > edge && low <= 0), uniform = span < cutoff;             \
    const real factor = low < 0 ? 0 : R(low * low), alpha = R(R(low + root) / 2);                                    \
    int64_t filled = 0, rejected = 0;                                                                                \
    while (filled < count) {                                                                                         \
      uint32_t x[4], y[4];                                                                                           \
      real values[BOUNDED_CANDIDATES];                                                                               \
      int accepted[BOUNDED_CANDIDATES], candidates = group;                                                          \
      philox_block(g, (*block)++, x);                                                                                \
      if (normal) {                                                                                                  \
        for (int i = 0; i < group / 2; i++) pair(x, i, values + 2 * i);                                              \
        for (int i = 0; i < group; i++) {                                                                            \
          values[i] = R(values[i]);                                                                                  \
          accepted[i] = values[i] >= low && values[i] <= high;                                                       \
        }                                                                                                            \
      } else if (uniform) {                                                                                          \
        philox_block(g, (*block)++, y);                                                                              \
        for (int i = 0; i < group; i++) {                                                                            \
          const real z = values[i] = R(R(UNIFORM(x, i) * span) + low);                                               \
          accepted[i] = UNIFORM(y, i) <= R(EXP(R(R(factor - R(z * z)) / 2)));                                        \
        }                                                                                                            \
      } else {                                                                                                       \
        candidates = group / 2;                                                                                      \
        for (int i = 0; i < group / 2; i++) {                                                                        \
          const real z = values[i] = R(R(-R(LOG(UNIFORM(x, 2 * i))) / alpha) + low);                                 \
          const real d = low < alpha ? R(alpha - z) : R(low - alpha);                                                \
          accepted[i] = UNIFORM(x, 2 * i + 1) <= R(EXP(R(-R(d * d) / 2))) && z < high;                               \
        }                                                                                                            \
      }                                                                                                              \
      for (int i = 0; i < candidates && filled < count; i++) {                                                       \
        if (accepted[i]) {                                                                                           \
          STORE(out, filled * step, R(R(values[i] * deviation) + mean));                                             \
          filled++;                                                                                                  \
          rejected = 0;                                                                                              \
        } else if (++rejected >= BOUNDED_ITERATIONS) {                                                               \
          return 0;                                                                                                  \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
    return 1;                                                                                                        \
  }

#endif
