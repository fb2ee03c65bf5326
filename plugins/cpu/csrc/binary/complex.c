/* Complex numbers. Quotients, powers and logarithms of complex64 are computed in double and rounded once per part;
 * powers of complex128 in long double, since the error of y log x grows with its size. */
#include <math.h>

#include "common/complex_numbers.h"
#include "common/broadcast.h"

typedef float _Complex c64;
typedef double _Complex c128;

static inline c64 product_complex64(c64 x, c64 y) {
  const float a = crealf(x), b = cimagf(x), c = crealf(y), d = cimagf(y);
  return CMPLXF(a * c - b * d, a * d + b * c);
}

static inline c128 product_complex128(c128 x, c128 y) {
  const double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  return CMPLX(a * c - b * d, a * d + b * c);
}

/* The squared modulus of a double's worth of float parts neither overflows nor vanishes. Infinities are C's to divide. */
static inline c64 quotient_complex64(c64 x, c64 y) {
  const double a = crealf(x), b = cimagf(x), c = crealf(y), d = cimagf(y), square = c * c + d * d;
  const double real = (a * c + b * d) / square, imaginary = (b * c - a * d) / square;
  return real == real && imaginary == imaginary ? CMPLXF((float)real, (float)imaginary) : (c64)((c128)x / (c128)y);
}

static inline c128 quotient_complex128(c128 x, c128 y) { return x / y; }

static inline c64 difference_complex64(c64 x, c64 y) {
  const float a = crealf(x) - crealf(y), b = cimagf(x) - cimagf(y);
  return CMPLXF(a * a + b * b, 0);
}

static inline c128 difference_complex128(c128 x, c128 y) {
  const double a = creal(x) - creal(y), b = cimag(x) - cimag(y);
  return CMPLX(a * a + b * b, 0);
}

/* x^0 is 1, and 0 to a power of positive real part 0; other powers of 0 are NaN. */
static inline c64 power_complex64_of(c64 x, c64 y) {
  if (y == 0) return 1;
  if (x == 0) return crealf(y) > 0 ? CMPLXF(0, 0) : CMPLXF(NAN, NAN);
  return (c64)cpow((c128)x, (c128)y);
}

static inline c128 power_complex128_of(c128 x, c128 y) {
  if (y == 0) return 1;
  if (x == 0) return creal(y) > 0 ? CMPLX(0, 0) : CMPLX(NAN, NAN);
  return (c128)cpowl((long double _Complex)x, (long double _Complex)y);
}

/* log(1 + y). Its modulus is about |y| for small y, so the real part's own cancellation does not show. */
static inline c128 log1p_complex128(c128 y) {
  const double a = creal(y), b = cimag(y);
  if (fabs(a) > 0.5 || fabs(b) > 0.5) return clog(CMPLX(1 + a, b));
  return CMPLX(0.5 * log1p(2 * a + (a * a + b * b)), atan2(b, 1 + a));
}

static inline c64 xlogy_complex64_of(c64 x, c64 y) {
  const c128 product = product_complex128((c128)x, clog((c128)y));
  return x == 0 ? 0 : CMPLXF((float)creal(product), (float)cimag(product));
}

static inline c64 xlog1py_complex64_of(c64 x, c64 y) {
  const c128 product = product_complex128((c128)x, log1p_complex128((c128)y));
  return x == 0 ? 0 : CMPLXF((float)creal(product), (float)cimag(product));
}

/* X(op, type, T, expression) */
#define COMPLEX(X, type, T)                                                                                          \
  X(add, type, T, x + y)                                                                                             \
  X(subtract, type, T, x - y)                                                                                        \
  X(multiply, type, T, product_##type(x, y))                                                                         \
  X(multiply_no_nan, type, T, y == 0 ? 0 : product_##type(x, y))                                                     \
  X(divide, type, T, quotient_##type(x, y))                                                                          \
  X(divide_no_nan, type, T, y == 0 ? 0 : quotient_##type(x, y))                                                      \
  X(xdivy, type, T, x == 0 ? 0 : quotient_##type(x, y))                                                              \
  X(squared_difference, type, T, difference_##type(x, y))                                                            \
  X(power, type, T, power_##type##_of(x, y))
#define ALL(X)                                                                                                       \
  COMPLEX(X, complex64, c64)                                                                                         \
  COMPLEX(X, complex128, c128)                                                                                       \
  X(xlogy, complex64, c64, xlogy_complex64_of(x, y))                                                                 \
  X(xlogy, complex128, c128, x == 0 ? 0 : product_complex128(x, clog(y)))                                            \
  X(xlog1py, complex64, c64, xlog1py_complex64_of(x, y))                                                             \
  X(xlog1py, complex128, c128, x == 0 ? 0 : product_complex128(x, log1p_complex128(y)))

#define DEFINE(op, type, T, expression) TF_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),

ALL(DEFINE)

/* Parts joined to complex numbers. */
TF_LOOP2(complex_float32, float, c64, CMPLXF(x, y))
TF_BROADCAST_KERNEL(complex_float32, 2)
TF_LOOP2(complex_float64, double, c128, CMPLX(x, y))
TF_BROADCAST_KERNEL(complex_float64, 2)

TF_TABLE(binary_complex) = {ALL(LIST) TF_ENTRY(complex_float32), TF_ENTRY(complex_float64), TF_END};
