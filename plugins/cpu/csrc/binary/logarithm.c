/* Products with logarithms. */
#include <timberframe/math/precision_float32.h>

#include <timberframe/math/exponential.h>
#include <timberframe/math/power.h>
#include "common/broadcast_half.h"

/* X(op, type, T, expression): 0 where x is 0, whatever y is. */
#define ALL(X)                                                                                                       \
  X(xlogy, float32, float, x == 0 ? x : x * tf_log_f32(y))                                                           \
  X(xlogy, float64, double, x == 0 ? x : x * power_log_float64(y))                                                   \
  X(xlog1py, float32, float, x == 0 ? x : x * tf_log1p_f32(y))                                                       \
  X(xlog1py, float64, double, x == 0 ? x : x * power_log1p_float64(y))
#define HALVES(X) X(xlogy) X(xlog1py)

#define DEFINE(op, type, T, expression)                                                                              \
  TF_COSTLY_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define DEFINE_HALVES(op)                                                                                            \
  TF_HALF_LOOPS2(op) TF_BROADCAST_KERNEL(op##_float16, 2) TF_BROADCAST_KERNEL(op##_bfloat16, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),
#define LIST_HALVES(op) TF_ENTRY(op##_float16), TF_ENTRY(op##_bfloat16),

ALL(DEFINE)
HALVES(DEFINE_HALVES)

TF_TABLE(binary_logarithm) = {ALL(LIST) HALVES(LIST_HALVES) TF_END};
