/* Integers: quotients, remainders, powers, bits and shifts. Nothing overflows in the signed sense, nothing traps. */
#include <timberframe/math/integers.h>

#include "common/broadcast.h"

/* A kernel that first looks for an operand y with which no result exists: reason 1, details index and value. */
#define CHECKED_KERNEL(op, T, type, bad)                                                                             \
  static int32_t op##_##type(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,         \
                             const int64_t *parameters) {                                                            \
    const T *divisors = inputs[1]->data;                                                                             \
    const int64_t count = outputs[0]->size ? inputs[1]->size : 0;                                                    \
    int found = 0;                                                                                                   \
    for (int64_t i = 0; i < count; i++) found |= divisors[i] bad;                                                    \
    for (int64_t i = 0; found; i++) {                                                                                \
      if (divisors[i] bad) return tf_fail(context, TF_INVALID_ARGUMENT, 1, i, (int64_t)divisors[i], 0, 0);           \
    }                                                                                                                \
    return tf_broadcast(context, inputs, outputs, parameters, 2, op##_##type##_loop);                                \
  }

/* X(op, type, T, expression) */
#define SIGNED(X, T, U, type)                                                                                        \
  X(truncate_div, type, T, tf_quotient_##type(x, y))                                                                 \
  X(floor_div, type, T, tf_floor_quotient_##type(x, y))                                                              \
  X(truncate_mod, type, T, tf_remainder_##type(x, y))                                                                \
  X(floor_mod, type, T, tf_floor_remainder_##type(x, y))
#define UNSIGNED(X, T, type)                                                                                         \
  X(truncate_div, type, T, tf_quotient_##type(x, y))                                                                 \
  X(truncate_mod, type, T, tf_remainder_##type(x, y))
#define DIVISIONS(X)                                                                                                 \
  SIGNED(X, int8_t, uint8_t, int8)                                                                                   \
  SIGNED(X, int16_t, uint16_t, int16)                                                                                \
  SIGNED(X, int32_t, uint32_t, int32)                                                                                \
  SIGNED(X, int64_t, uint64_t, int64)                                                                                \
  UNSIGNED(X, uint8_t, uint8)                                                                                        \
  UNSIGNED(X, uint16_t, uint16)                                                                                      \
  UNSIGNED(X, uint32_t, uint32)                                                                                      \
  UNSIGNED(X, uint64_t, uint64)
#define POWERS(X)                                                                                                    \
  X(power, int8, int8_t, tf_power_int8(x, y))                                                                        \
  X(power, int16, int16_t, tf_power_int16(x, y))                                                                     \
  X(power, int32, int32_t, tf_power_int32(x, y))                                                                     \
  X(power, int64, int64_t, tf_power_int64(x, y))
#define BITS(X, type, T)                                                                                             \
  X(bitwise_and, type, T, x & y)                                                                                     \
  X(bitwise_or, type, T, x | y)                                                                                      \
  X(bitwise_xor, type, T, x ^ y)                                                                                     \
  X(left_shift, type, T, tf_left_shift_##type(x, y))                                                                 \
  X(right_shift, type, T, tf_right_shift_##type(x, y))
#define SHIFTS(X, type, T, U)                                                                                        \
  X(left_shift, type, T, tf_left_shift_##type(x, y))                                                                 \
  X(right_shift, type, T, tf_right_shift_##type(x, y))
#define PLAIN(X)                                                                                                     \
  BITS(X, uint8, uint8_t)                                                                                            \
  BITS(X, uint16, uint16_t)                                                                                          \
  BITS(X, uint32, uint32_t)                                                                                          \
  BITS(X, uint64, uint64_t)                                                                                          \
  SHIFTS(X, int8, int8_t, uint8_t)                                                                                   \
  SHIFTS(X, int16, int16_t, uint16_t)                                                                                \
  SHIFTS(X, int32, int32_t, uint32_t)                                                                                \
  SHIFTS(X, int64, int64_t, uint64_t)

#define DEFINE_DIVISION(op, type, T, expression)                                                                     \
  TF_LOOP2(op##_##type, T, T, expression) CHECKED_KERNEL(op, T, type, == 0)
#define DEFINE_POWER(op, type, T, expression) TF_LOOP2(op##_##type, T, T, expression) CHECKED_KERNEL(op, T, type, < 0)
#define DEFINE(op, type, T, expression) TF_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),

DIVISIONS(DEFINE_DIVISION)
POWERS(DEFINE_POWER)
PLAIN(DEFINE)

TF_TABLE(binary_integers) = {DIVISIONS(LIST) POWERS(LIST) PLAIN(LIST) TF_END};
