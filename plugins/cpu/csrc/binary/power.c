/* Powers, angles and neighbours of floating-point numbers. */
#include "binary/power.h"

#include "common/broadcast_half.h"

/* The next float on the way from x to y, by its bits, which count up with the magnitude. */
#define NEIGHBOUR(type, T, U, sign)                                                                                  \
  static inline T neighbour_##type(T x, T y) {                                                                       \
    U bits;                                                                                                          \
    memcpy(&bits, &x, sizeof bits);                                                                                  \
    const U away = bits + 1, back = bits - 1;                                                                        \
    U moved = (x < y) == !(bits >> sign) ? away : back;                                                              \
    moved = x == 0 ? (U)(y < 0) << sign | 1 : moved;                                                                 \
    T result;                                                                                                        \
    memcpy(&result, &moved, sizeof result);                                                                          \
    return x != x || y != y ? x + y : x == y ? y : result;                                                           \
  }
NEIGHBOUR(float32, float, uint32_t, 31)
NEIGHBOUR(float64, double, uint64_t, 63)

/* X(op, type, T, expression): one loop and kernel each. */
#define ALL(X)                                                                                                       \
  X(power, float32, float, power_float32_of(x, y))                                                                   \
  X(power, float64, double, power_float64_of(x, y))                                                                  \
  X(atan2, float32, float, angle_float32(x, y))                                                                      \
  X(atan2, float64, double, angle_float64(x, y))                                                                     \
  X(next_after, float32, float, neighbour_float32(x, y))                                                             \
  X(next_after, float64, double, neighbour_float64(x, y))
#define HALVES(X) X(power) X(atan2)

#define DEFINE(op, type, T, expression)                                                                              \
  TF_COSTLY_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define DEFINE_HALVES(op)                                                                                            \
  TF_HALF_LOOPS2(op) TF_BROADCAST_KERNEL(op##_float16, 2) TF_BROADCAST_KERNEL(op##_bfloat16, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),
#define LIST_HALVES(op) TF_ENTRY(op##_float16), TF_ENTRY(op##_bfloat16),

ALL(DEFINE)
HALVES(DEFINE_HALVES)

TF_TABLE(binary_power) = {ALL(LIST) HALVES(LIST_HALVES) TF_END};
