/* Choosing elements by a condition: only their size matters. */
#include "common/streaming.h"

#include "common/broadcast.h"

typedef struct wide {
  uint64_t word[2];
} wide;

#define CHOOSE(first, second)                                                                                        \
  TF_VECTOR for (int64_t i = 0; i < count; i++) z[i] = condition[i] ? first : second;

/* Where the condition does not vary within the run, the chosen operand is copied. */
#define SELECT(bytes, T)                                                                                             \
  static void select_##bytes##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {          \
    const uint8_t *condition = in[0];                                                                                \
    const T *t = in[1], *e = in[2];                                                                                  \
    T *z = out;                                                                                                      \
    if (!step[0]) {                                                                                                  \
      const T *chosen = *condition ? t : e;                                                                          \
      if (step[*condition ? 1 : 2]) {                                                                                \
        memmove(z, chosen, (size_t)count * sizeof(T));                                                               \
      } else {                                                                                                       \
        const T value = *chosen;                                                                                     \
        for (int64_t i = 0; i < count; i++) z[i] = value;                                                            \
      }                                                                                                              \
    } else if (step[1] && step[2]) {                                                                                 \
      CHOOSE(t[i], e[i])                                                                                             \
    } else if (step[1]) {                                                                                            \
      const T last = *e;                                                                                             \
      CHOOSE(t[i], last)                                                                                             \
    } else if (step[2]) {                                                                                            \
      const T first = *t;                                                                                            \
      CHOOSE(first, e[i])                                                                                            \
    } else {                                                                                                         \
      const T first = *t, last = *e;                                                                                 \
      CHOOSE(first, last)                                                                                            \
    }                                                                                                                \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(select_##bytes, 3)

SELECT(1, uint8_t)
SELECT(2, uint16_t)
SELECT(4, uint32_t)
SELECT(8, uint64_t)
SELECT(16, wide)

TF_TABLE(select) = {
    TF_ENTRY(select_1), TF_ENTRY(select_2), TF_ENTRY(select_4), TF_ENTRY(select_8), TF_ENTRY(select_16), TF_END,
};
