/* Sums, products, extremes and quotients of real numbers; integers wrap around. */
#include "common/streaming.h"

#include <math.h>

#include "common/broadcast_half.h"

/* X(op, type, T, expression): one loop and kernel each. Signed integers share the unsigned ones' where bits agree. */

#define WRAPPING(X, type, T)                                                                                         \
  X(add, type, T, 1u * x + y)                                                                                        \
  X(subtract, type, T, 1u * x - y)                                                                                   \
  X(multiply, type, T, 1u * x * y)

#define EXTREMES(X, type, T)                                                                                         \
  X(maximum, type, T, x < y || y != y ? y : x)                                                                       \
  X(minimum, type, T, y < x || y != y ? y : x)

#define REAL(X, type, T, suffix)                                                                                     \
  X(add, type, T, x + y)                                                                                             \
  X(subtract, type, T, x - y)                                                                                        \
  X(multiply, type, T, x * y)                                                                                        \
  X(divide, type, T, x / y)                                                                                          \
  X(squared_difference, type, T, (x - y) * (x - y))                                                                  \
  X(multiply_no_nan, type, T, y == 0 ? 0 : x * y)                                                                    \
  X(divide_no_nan, type, T, y == 0 ? 0 : x / y)                                                                      \
  X(xdivy, type, T, x == 0 ? x : x / y)                                                                              \
  X(floor_div, type, T, floor##suffix(x / y))                                                                        \
  X(truncate_div, type, T, trunc##suffix(x / y))                                                                     \
  EXTREMES(X, type, T)

#define HALVES(X)                                                                                                    \
  X(add) X(subtract) X(multiply) X(divide) X(squared_difference) X(multiply_no_nan) X(divide_no_nan) X(xdivy)        \
  X(floor_div) X(truncate_div) X(maximum) X(minimum)

#define FLOATS(X)                                                                                                    \
  REAL(X, float32, float, f)                                                                                         \
  REAL(X, float64, double, )

#define INTEGERS(X)                                                                                                  \
  WRAPPING(X, uint8, uint8_t)                                                                                        \
  WRAPPING(X, uint16, uint16_t)                                                                                      \
  WRAPPING(X, uint32, uint32_t)                                                                                      \
  WRAPPING(X, uint64, uint64_t)                                                                                      \
  X(squared_difference, uint32, uint32_t, (x - y) * (x - y))                                                         \
  X(squared_difference, uint64, uint64_t, (x - y) * (x - y))                                                         \
  EXTREMES(X, int8, int8_t)                                                                                          \
  EXTREMES(X, int16, int16_t)                                                                                        \
  EXTREMES(X, int32, int32_t)                                                                                        \
  EXTREMES(X, int64, int64_t)                                                                                        \
  EXTREMES(X, uint8, uint8_t)                                                                                        \
  EXTREMES(X, uint16, uint16_t)                                                                                      \
  EXTREMES(X, uint32, uint32_t)                                                                                      \
  EXTREMES(X, uint64, uint64_t)

#define DEFINE(op, type, T, expression)                                                                              \
  TF_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define DEFINE_NEAR(op, type, T, expression) TF_LOOP2(op##_##type##_near, T, T, expression)
#define DEFINE_FLOATS(op, type, T, expression)                                                                       \
  TF_LOOP2(op##_##type, T, T, expression) TF_FAR_LOOP2(op##_##type, T, expression) TF_SIZED_KERNEL2(op##_##type, T)
#define DEFINE_HALVES(op)                                                                                            \
  TF_HALF_LOOPS2(op) TF_BROADCAST_KERNEL(op##_float16, 2) TF_BROADCAST_KERNEL(op##_bfloat16, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),
#define LIST_HALVES(op) TF_ENTRY(op##_float16), TF_ENTRY(op##_bfloat16),

TF_NEAR_BEGIN
FLOATS(DEFINE_NEAR)
TF_NEAR_END
FLOATS(DEFINE_FLOATS)
INTEGERS(DEFINE)
HALVES(DEFINE_HALVES)

TF_TABLE(binary_arithmetic) = {FLOATS(LIST) INTEGERS(LIST) HALVES(LIST_HALVES) TF_END};
