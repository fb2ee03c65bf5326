/* Integers: quotients, remainders, powers, shifts and bits. Nothing overflows in the signed sense, nothing traps.
 *
 * Divisors are never 0 here, and exponents never below 0; a divisor of -1 is taken out because the least integer
 * divided by it does not fit. On a CPU quotients come from floating-point division, which vectorises, where it is
 * exact enough: a quotient of integers that is not whole is at least 1 / |y| from the next integer, and rounding moves
 * it by at most |x / y| 2^-p, which is less while |x| < 2^p. So 16 bits divide in float (p = 24), 32 in double. */
#ifndef TIMBERFRAME_MATH_INTEGERS_H
#define TIMBERFRAME_MATH_INTEGERS_H

#include <timberframe/math/language.h>

/* The number of bits that are set: of each two, of each four, of each byte, then the sum of the bytes. */
static inline uint8_t tf_bit_count(uint64_t x) {
  x -= x >> 1 & (uint64_t)0x5555555555555555;
  x = (x & (uint64_t)0x3333333333333333) + (x >> 2 & (uint64_t)0x3333333333333333);
  x = (x + (x >> 4)) & (uint64_t)0x0f0f0f0f0f0f0f0f;
  return (uint8_t)(x * (uint64_t)0x0101010101010101 >> 56);
}

#define TF_SIGNED_WHOLE(T, U) (y == -1 ? (T)(0u - (U)x) : (T)(x / (y == -1 ? 1 : y)))
#define TF_UNSIGNED_WHOLE(T) ((T)(x / y))
#if defined(__OPENCL_VERSION__) || defined(__CUDACC__)
#define TF_SIGNED_QUOTIENT(T, U, F) TF_SIGNED_WHOLE(T, U)
#define TF_UNSIGNED_QUOTIENT(T, F) TF_UNSIGNED_WHOLE(T)
#else
#define TF_SIGNED_QUOTIENT(T, U, F) (y == -1 ? (T)(0u - (U)x) : (T)((F)x / (F)(y == -1 ? 1 : y)))
#define TF_UNSIGNED_QUOTIENT(T, F) ((T)((F)x / (F)y))
#endif

#define TF_SIGNED_DIVISIONS(T, U, type, QUOTIENT)                                                                    \
  static inline T tf_quotient_##type(T x, T y) { return QUOTIENT; }                                                  \
  static inline T tf_remainder_##type(T x, T y) {                                                                    \
    return (T)((U)x - (U)((1u * (U)tf_quotient_##type(x, y)) * (U)y));                                               \
  }                                                                                                                  \
  static inline T tf_floor_quotient_##type(T x, T y) {                                                               \
    const T r = tf_remainder_##type(x, y);                                                                           \
    return (T)(tf_quotient_##type(x, y) - (r != 0 && (r < 0) != (y < 0)));                                           \
  }                                                                                                                  \
  static inline T tf_floor_remainder_##type(T x, T y) {                                                              \
    const T r = tf_remainder_##type(x, y);                                                                           \
    return (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r);                                                            \
  }
#define TF_UNSIGNED_DIVISIONS(T, type, QUOTIENT)                                                                     \
  static inline T tf_quotient_##type(T x, T y) { return QUOTIENT; }                                                  \
  static inline T tf_remainder_##type(T x, T y) { return (T)(x - 1u * tf_quotient_##type(x, y) * y); }

TF_SIGNED_DIVISIONS(int8_t, uint8_t, int8, TF_SIGNED_QUOTIENT(int8_t, uint8_t, float))
TF_SIGNED_DIVISIONS(int16_t, uint16_t, int16, TF_SIGNED_QUOTIENT(int16_t, uint16_t, float))
TF_SIGNED_DIVISIONS(int32_t, uint32_t, int32, TF_SIGNED_QUOTIENT(int32_t, uint32_t, double))
TF_SIGNED_DIVISIONS(int64_t, uint64_t, int64, TF_SIGNED_WHOLE(int64_t, uint64_t))
TF_UNSIGNED_DIVISIONS(uint8_t, uint8, TF_UNSIGNED_QUOTIENT(uint8_t, float))
TF_UNSIGNED_DIVISIONS(uint16_t, uint16, TF_UNSIGNED_QUOTIENT(uint16_t, float))
TF_UNSIGNED_DIVISIONS(uint32_t, uint32, TF_UNSIGNED_QUOTIENT(uint32_t, double))
TF_UNSIGNED_DIVISIONS(uint64_t, uint64, TF_UNSIGNED_WHOLE(uint64_t))

#define TF_INTEGER_POWER(T, U, type)                                                                                 \
  static inline T tf_power_##type(T x, T y) {                                                                        \
    U base = (U)x, result = 1;                                                                                       \
    for (U rest = (U)y; rest; rest >>= 1) {                                                                          \
      if (rest & 1) result = (U)(1u * result * base);                                                                \
      base = (U)(1u * base * base);                                                                                  \
    }                                                                                                                \
    return (T)result;                                                                                                \
  }
TF_INTEGER_POWER(int8_t, uint8_t, int8)
TF_INTEGER_POWER(int16_t, uint16_t, int16)
TF_INTEGER_POWER(int32_t, uint32_t, int32)
TF_INTEGER_POWER(int64_t, uint64_t, int64)

/* Shift counts outside [0, bits) are taken for the nearest one inside. */
#define TF_SHIFT_COUNT(T) (y < 0 ? 0 : y > (T)(8 * sizeof(T) - 1) ? (T)(8 * sizeof(T) - 1) : y)
#define TF_UNSIGNED_COUNT(T) (y > (T)(8 * sizeof(T) - 1) ? (T)(8 * sizeof(T) - 1) : y)
#define TF_SHIFTS(T, U, type, COUNT)                                                                                 \
  static inline T tf_left_shift_##type(T x, T y) { return (T)(1u * (U)x << COUNT(T)); }                              \
  static inline T tf_right_shift_##type(T x, T y) { return (T)(x >> COUNT(T)); }
TF_SHIFTS(int8_t, uint8_t, int8, TF_SHIFT_COUNT)
TF_SHIFTS(int16_t, uint16_t, int16, TF_SHIFT_COUNT)
TF_SHIFTS(int32_t, uint32_t, int32, TF_SHIFT_COUNT)
TF_SHIFTS(int64_t, uint64_t, int64, TF_SHIFT_COUNT)
TF_SHIFTS(uint8_t, uint8_t, uint8, TF_UNSIGNED_COUNT)
TF_SHIFTS(uint16_t, uint16_t, uint16, TF_UNSIGNED_COUNT)
TF_SHIFTS(uint32_t, uint32_t, uint32, TF_UNSIGNED_COUNT)
TF_SHIFTS(uint64_t, uint64_t, uint64, TF_UNSIGNED_COUNT)

#endif
