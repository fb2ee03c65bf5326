/* How a gamma number moves with its shape parameter. */
#include <timberframe/math/gamma_slope.h>

#include "common/broadcast.h"

#define DEFINE(type, T)                                                                                              \
  static T gamma_slope_##type##_of(T alpha, T sample) { return (T)tf_gamma_slope((double)alpha, (double)sample); }   \
  TF_COSTLY_LOOP2(gamma_slope_##type, T, T, gamma_slope_##type##_of(x, y))                                           \
  TF_BROADCAST_KERNEL(gamma_slope_##type, 2)

DEFINE(float32, float)
DEFINE(float64, double)

TF_TABLE(binary_gamma_slope) = {TF_ENTRY(gamma_slope_float32), TF_ENTRY(gamma_slope_float64), TF_END};
