/* The regularised incomplete beta function. */
#include <timberframe/math/beta.h>

#include "common/broadcast.h"

#define DEFINE(type, T)                                                                                              \
  static void beta_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {             \
    const T *a = in[0], *b = in[1], *x = in[2];                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                            \
      ((T *)out)[i] = (T)tf_beta((double)a[i * step[0]], (double)b[i * step[1]], (double)x[i * step[2]]);            \
    }                                                                                                                \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(beta_##type, 3)

DEFINE(float32, float)
DEFINE(float64, double)

TF_TABLE(binary_beta) = {TF_ENTRY(beta_float32), TF_ENTRY(beta_float64), TF_END};
