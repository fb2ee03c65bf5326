/* Integers: quotients, remainders, powers, bits and shifts. Nothing overflows in the signed sense, nothing traps. */
#include "common/broadcast.h"

/* Quotients come from floating-point division, which vectorises, where it is exact enough: a quotient of integers
 * that is not whole lies at least 1 / |y| from the next integer, and rounding moves it by at most |x / y| 2^-p,
 * which is less while |x| < 2^p. So 16 bits divide in float (p = 24) and 32 bits in double (p = 53). Divisors are
 * never 0 here; a divisor of -1 is taken out because the least integer divided by it does not fit. */
#define SIGNED_QUOTIENT(T, U, F) (y == -1 ? (T)(0u - (U)x) : (T)((F)x / (F)(y == -1 ? 1 : y)))
#define UNSIGNED_QUOTIENT(T, F) ((T)((F)x / (F)y))
#define SIGNED_WHOLE(T, U) (y == -1 ? (T)(0u - (U)x) : (T)(x / (y == -1 ? 1 : y)))
#define UNSIGNED_WHOLE(T) ((T)(x / y))

#define SIGNED_DIVISIONS(T, U, type, QUOTIENT)                                                                       \
  static inline T quotient_##type(T x, T y) { return QUOTIENT; }                                                     \
  static inline T remainder_##type(T x, T y) {                                                                       \
    return (T)((U)x - (U)((1u * (U)quotient_##type(x, y)) * (U)y));                                                  \
  }                                                                                                                  \
  static inline T floor_quotient_##type(T x, T y) {                                                                  \
    const T r = remainder_##type(x, y);                                                                              \
    return (T)(quotient_##type(x, y) - (r != 0 && (r < 0) != (y < 0)));                                              \
  }                                                                                                                  \
  static inline T floor_remainder_##type(T x, T y) {                                                                 \
    const T r = remainder_##type(x, y);                                                                              \
    return (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r);                                                            \
  }
#define UNSIGNED_DIVISIONS(T, type, QUOTIENT)                                                                        \
  static inline T quotient_##type(T x, T y) { return QUOTIENT; }                                                     \
  static inline T remainder_##type(T x, T y) { return (T)(x - 1u * quotient_##type(x, y) * y); }

SIGNED_DIVISIONS(int8_t, uint8_t, int8, SIGNED_QUOTIENT(int8_t, uint8_t, float))
SIGNED_DIVISIONS(int16_t, uint16_t, int16, SIGNED_QUOTIENT(int16_t, uint16_t, float))
SIGNED_DIVISIONS(int32_t, uint32_t, int32, SIGNED_QUOTIENT(int32_t, uint32_t, double))
SIGNED_DIVISIONS(int64_t, uint64_t, int64, SIGNED_WHOLE(int64_t, uint64_t))
UNSIGNED_DIVISIONS(uint8_t, uint8, UNSIGNED_QUOTIENT(uint8_t, float))
UNSIGNED_DIVISIONS(uint16_t, uint16, UNSIGNED_QUOTIENT(uint16_t, float))
UNSIGNED_DIVISIONS(uint32_t, uint32, UNSIGNED_QUOTIENT(uint32_t, double))
UNSIGNED_DIVISIONS(uint64_t, uint64, UNSIGNED_WHOLE(uint64_t))

#define POWER(T, U, type)                                                                                            \
  static inline T raise_##type(T x, T y) {                                                                           \
    U base = (U)x, result = 1;                                                                                       \
    for (U rest = (U)y; rest; rest >>= 1) {                                                                          \
      if (rest & 1) result = (U)(1u * result * base);                                                                \
      base = (U)(1u * base * base);                                                                                  \
    }                                                                                                                \
    return (T)result;                                                                                                \
  }
POWER(int8_t, uint8_t, int8)
POWER(int16_t, uint16_t, int16)
POWER(int32_t, uint32_t, int32)
POWER(int64_t, uint64_t, int64)

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

#define SHIFT_COUNT(T) (y < 0 ? 0 : y > (T)(8 * sizeof(T) - 1) ? (T)(8 * sizeof(T) - 1) : y)
#define UNSIGNED_COUNT(T) (y > (T)(8 * sizeof(T) - 1) ? (T)(8 * sizeof(T) - 1) : y)

/* X(op, type, T, expression) */
#define SIGNED(X, T, U, type)                                                                                        \
  X(truncate_div, type, T, quotient_##type(x, y))                                                                    \
  X(floor_div, type, T, floor_quotient_##type(x, y))                                                                 \
  X(truncate_mod, type, T, remainder_##type(x, y))                                                                   \
  X(floor_mod, type, T, floor_remainder_##type(x, y))
#define UNSIGNED(X, T, type)                                                                                         \
  X(truncate_div, type, T, quotient_##type(x, y))                                                                    \
  X(truncate_mod, type, T, remainder_##type(x, y))
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
  X(power, int8, int8_t, raise_int8(x, y))                                                                           \
  X(power, int16, int16_t, raise_int16(x, y))                                                                        \
  X(power, int32, int32_t, raise_int32(x, y))                                                                        \
  X(power, int64, int64_t, raise_int64(x, y))
#define BITS(X, type, T)                                                                                             \
  X(bitwise_and, type, T, x & y)                                                                                     \
  X(bitwise_or, type, T, x | y)                                                                                      \
  X(bitwise_xor, type, T, x ^ y)                                                                                     \
  X(left_shift, type, T, (T)(1u * x << UNSIGNED_COUNT(T)))                                                           \
  X(right_shift, type, T, x >> UNSIGNED_COUNT(T))
#define SHIFTS(X, type, T, U)                                                                                        \
  X(left_shift, type, T, (T)(1u * (U)x << SHIFT_COUNT(T)))                                                           \
  X(right_shift, type, T, x >> SHIFT_COUNT(T))
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
