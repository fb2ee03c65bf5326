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
 * numbers of a block's; group: how many there are; SPACE: address space of the output.
 *
 * A batch takes steps of `blocks` blocks each, and a step has `candidates` numbers, some of which are accepted. */
#define BOUNDED_BATCH(name, type, real, R, STORE, UNIFORM, pair, group, SQRT, EXP, LOG, SPACE)                       \
  typedef struct {                                                                                                   \
    real low, high, span, factor, alpha;                                                                             \
    int normal, uniform, blocks, candidates;                                                                         \
  } name##_method;                                                                                                   \
  /* How standard normals in [low, high], where low is finite, are drawn. */                                         \
  static inline name##_method name##_method_of(real low, real high) {                                                \
    name##_method m;                                                                                                 \
    const real root = R(SQRT(R(R(low * low) + 4)));                                                                  \
    const real power = R(EXP(R((real)0.5 + R(R(low * R(low - root)) / 4))));                                         \
    const real cutoff = R(R(2 * power) / R(low + root)), edge = R((real)1.3);                                        \
    m.low = low, m.high = high, m.span = R(high - low);                                                              \
    m.factor = low < 0 ? 0 : R(low * low), m.alpha = R(R(low + root) / 2);                                           \
    m.normal = (low < -edge && high >= 0) || (high > edge && low <= 0);                                              \
    m.uniform = !m.normal && m.span < cutoff;                                                                        \
    m.blocks = m.uniform ? 2 : 1;                                                                                    \
    m.candidates = m.normal || m.uniform ? group : group / 2;                                                        \
    return m;                                                                                                        \
  }                                                                                                                  \
  /* The candidates of the step that begins with a block; bit i of the result: whether number i is accepted. */      \
  static inline int name##_step(const philox *g, uint64_t block, const name##_method *m, real *values) {             \
    uint32_t x[4], y[4];                                                                                             \
    int accepted = 0;                                                                                                \
    philox_block(g, block, x);                                                                                       \
    if (m->normal) {                                                                                                 \
      for (int i = 0; i < group / 2; i++) pair(x, i, values + 2 * i);                                                \
      for (int i = 0; i < group; i++) {                                                                              \
        values[i] = R(values[i]);                                                                                    \
        accepted |= (values[i] >= m->low && values[i] <= m->high) << i;                                              \
      }                                                                                                              \
    } else if (m->uniform) {                                                                                         \
      philox_block(g, block + 1, y);                                                                                 \
      for (int i = 0; i < group; i++) {                                                                              \
        const real z = values[i] = R(R(UNIFORM(x, i) * m->span) + m->low);                                           \
        accepted |= (UNIFORM(y, i) <= R(EXP(R(R(m->factor - R(z * z)) / 2)))) << i;                                  \
      }                                                                                                              \
    } else {                                                                                                         \
      for (int i = 0; i < group / 2; i++) {                                                                          \
        const real z = values[i] = R(R(-R(LOG(UNIFORM(x, 2 * i))) / m->alpha) + m->low);                             \
        const real d = m->low < m->alpha ? R(m->alpha - z) : R(m->low - m->alpha);                                   \
        accepted |= (UNIFORM(x, 2 * i + 1) <= R(EXP(R(-R(d * d) / 2))) && z < m->high) << i;                         \
      }                                                                                                              \
    }                                                                                                                \
    return accepted;                                                                                                 \
  }                                                                                                                  \
  /* Fills a batch; false if no candidate is accepted. */                                                            \
  static inline int name##_batch(const philox *g, uint64_t *block, real low, real high, real mean, real deviation,   \
                                 SPACE type *out, int64_t count, int64_t step) {                                     \
    const name##_method m = name##_method_of(low, high);                                                             \
    int64_t filled = 0, rejected = 0;                                                                                \
    while (filled < count) {                                                                                         \
      real values[BOUNDED_CANDIDATES];                                                                               \
      const int accepted = name##_step(g, *block, &m, values);                                                       \
      *block += m.blocks;                                                                                            \
      for (int i = 0; i < m.candidates && filled < count; i++) {                                                     \
        if (accepted >> i & 1) {                                                                                     \
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
