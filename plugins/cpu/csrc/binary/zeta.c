/* The Hurwitz zeta function and the derivatives of digamma. */
#include <timberframe/math/zeta.h>

#include "common/broadcast.h"

#define ALL(X)                                                                                                       \
  X(zeta, float32, float) X(zeta, float64, double) X(polygamma, float32, float) X(polygamma, float64, double)
#define DEFINE(op, type, T)                                                                                          \
  static T op##_##type##_of(T x, T y) { return (T)tf_##op((double)x, (double)y); }                                   \
  TF_COSTLY_LOOP2(op##_##type, T, T, op##_##type##_of(x, y)) TF_BROADCAST_KERNEL(op##_##type, 2)
#define LIST(op, type, T) TF_ENTRY(op##_##type),

ALL(DEFINE)

TF_TABLE(binary_zeta) = {ALL(LIST) TF_END};
