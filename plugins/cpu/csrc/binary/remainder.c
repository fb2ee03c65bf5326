/* Remainders of floating-point numbers, exact as C's fmod. */
#include <math.h>

#include "common/broadcast_half.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

enum { CHUNK = 64 };

/* x - q y for the truncated quotient q, where that is exact in double: q below 2^28 has room for its product with
 * a float's 24 bits. The division's own rounding may put q one off, which the remainder's sign or size shows.
 * `far` is set where the quotient is too large, or x or y not finite, or y zero: there the library's function
 * decides. */
static inline float remainder_float32(float x, float y, int *far) {
  const double a = fabs((double)x), b = fabs((double)y);
  const double q = trunc(a / b);
  double r = a - q * b;
  r = r < 0 ? r + b : r;
  r = r >= b ? r - b : r;
  *far |= !(q < 0x1p28) | !(b < INFINITY);
  return copysignf((float)r, x);
}

/* The same in double, where only a fused multiplication keeps the product exact; q is then below 2^52. */
static inline double remainder_float64(double x, double y, int *far) {
  const double a = fabs(x), b = fabs(y);
  const double q = trunc(a / b);
  double r = HAS_FMA ? fma(-q, b, a) : 0;
  r = r < 0 ? r + b : r;
  r = r >= b ? r - b : r;
  *far |= !HAS_FMA | !(q < 0x1p52) | !(b < INFINITY);
  return copysign(r, x);
}

#define SAME(r, y) (r)
#define FLOORED(r, y) ((r) != 0 && ((r) < 0) != ((y) < 0) ? (r) + (y) : (r))

/* In chunks, so that a chunk whose quotients are all near runs without a branch, and operands are still there if
 * not. */
#define REMAINDERS(op, type, T, library, FINISH)                                                                     \
  static TF_NOINLINE void op##_##type##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) { \
    const T *a = in[0], *b = in[1];                                                                                  \
    T *z = out, x[CHUNK], y[CHUNK], r[CHUNK];                                                                        \
    for (int64_t begin = 0; begin < count; begin += CHUNK) {                                                         \
      const int64_t size = count - begin < CHUNK ? count - begin : CHUNK;                                            \
      int far = 0;                                                                                                   \
      for (int64_t i = 0; i < size; i++) x[i] = a[(begin + i) * step[0]];                                            \
      for (int64_t i = 0; i < size; i++) y[i] = b[(begin + i) * step[1]];                                            \
      for (int64_t i = 0; i < size; i++) r[i] = remainder_##type(x[i], y[i], &far);                                  \
      if (far) {                                                                                                     \
        for (int64_t i = 0; i < size; i++) r[i] = library(x[i], y[i]);                                               \
      }                                                                                                              \
      for (int64_t i = 0; i < size; i++) z[begin + i] = FINISH(r[i], y[i]);                                          \
    }                                                                                                                \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(op##_##type, 2)

REMAINDERS(truncate_mod, float32, float, fmodf, SAME)
REMAINDERS(truncate_mod, float64, double, fmod, SAME)
REMAINDERS(floor_mod, float32, float, fmodf, FLOORED)
REMAINDERS(floor_mod, float64, double, fmod, FLOORED)
TF_HALF_LOOPS2(floor_mod)
TF_BROADCAST_KERNEL(floor_mod_float16, 2)
TF_BROADCAST_KERNEL(floor_mod_bfloat16, 2)

TF_TABLE(binary_remainder) = {
    TF_ENTRY(truncate_mod_float32), TF_ENTRY(truncate_mod_float64), TF_ENTRY(floor_mod_float32),
    TF_ENTRY(floor_mod_float64),    TF_ENTRY(floor_mod_float16),    TF_ENTRY(floor_mod_bfloat16),
    TF_END,
};
