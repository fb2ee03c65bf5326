/* Functions of complex numbers, by the C library's. complex64 is computed in complex128 and rounded once. */
#define TF_MAP_GRAIN 1024
#include <math.h>

#include "common/complex_numbers.h"
#include "pair.h"

typedef double complex tf_complex;

static tf_complex tf_neg(tf_complex z) { return CMPLX(-creal(z), -cimag(z)); }
static tf_complex tf_conj(tf_complex z) { return CMPLX(creal(z), -cimag(z)); }

static tf_complex tf_square(tf_complex z) {
  double a = creal(z), b = cimag(z);
  return CMPLX(a * a - b * b, a * b + b * a);
}

static tf_complex tf_sign(tf_complex z) {
  double a = creal(z), b = cimag(z), modulus = hypot(a, b);
  if (modulus == 0.0) return 0.0;
  return CMPLX(a / modulus, b / modulus);
}

/* 1 / z by Smith's method (Algorithm 116: complex division, 1962): no square overflows. 0 of what is infinite. */
static tf_complex tf_reciprocal(tf_complex z) {
  double a = creal(z), b = cimag(z);
  if (isinf(a) || isinf(b)) return 0.0;
  if (fabs(a) >= fabs(b)) {
    double ratio = b / a, d = a + b * ratio;
    return CMPLX(1.0 / d, -ratio / d);
  }
  double ratio = a / b, d = a * ratio + b;
  return CMPLX(ratio / d, -1.0 / d);
}

static tf_complex tf_rsqrt(tf_complex z) {
  if (creal(z) == 0.0 && cimag(z) == 0.0) return CMPLX(INFINITY, NAN);
  return tf_reciprocal(csqrt(z));
}

/* expm1(a) cos(b) - 2 sin(b / 2)^2 + i exp(a) sin(b): nothing cancels near 0. */
static tf_complex tf_expm1(tf_complex z) {
  double a = creal(z), b = cimag(z), half = sin(0.5 * b);
  return CMPLX(expm1(a) * cos(b) - 2.0 * half * half, b == 0.0 ? b : exp(a) * sin(b));
}

/* The real part is log |1 + z|; near 0 log1p(2a + a^2 + b^2) / 2, where nothing cancels against the modulus. */
static tf_complex tf_log1p(tf_complex z) {
  double a = creal(z), b = cimag(z);
  int near = fabs(a) < 0.5 && fabs(b) < 0.5;
  return CMPLX(near ? 0.5 * log1p(a * (2.0 + a) + b * b) : log(hypot(1.0 + a, b)), atan2(b, 1.0 + a));
}

/* By tanh in the strip that holds the poles; outside, exp cannot cancel against 1. */
static tf_complex tf_sigmoid(tf_complex z) {
  if (!(fabs(creal(z)) > 1.0)) {
    tf_complex t = ctanh(CMPLX(0.5 * creal(z), 0.5 * cimag(z)));
    return CMPLX(0.5 + 0.5 * creal(t), 0.5 * cimag(t));
  }
  tf_complex e = cexp(creal(z) > 0.0 ? tf_neg(z) : z);
  tf_complex r = tf_reciprocal(CMPLX(1.0 + creal(e), cimag(e)));
  if (creal(z) > 0.0) return r;
  return CMPLX(creal(e) * creal(r) - cimag(e) * cimag(r), creal(e) * cimag(r) + cimag(e) * creal(r));
}

#define TF_FUNCTIONS(X)                                                                                            \
  X(neg, tf_neg) X(conj, tf_conj) X(sign, tf_sign) X(square, tf_square) X(reciprocal, tf_reciprocal)               \
  X(sqrt, csqrt) X(rsqrt, tf_rsqrt) X(exp, cexp) X(expm1, tf_expm1) X(log, clog) X(log1p, tf_log1p)                \
  X(sin, csin) X(cos, ccos) X(tan, ctan) X(asin, casin) X(acos, cacos) X(atan, catan)                              \
  X(sinh, csinh) X(cosh, ccosh) X(tanh, ctanh) X(asinh, casinh) X(acosh, cacosh) X(atanh, catanh)                  \
  X(sigmoid, tf_sigmoid)

/* The kernels <name>_complex64 and <name>_complex128 of an expression in z; `narrow` and `wide` are their results. */
#define TF_DEFINE_AS(name, narrow, wide, expression)                                                               \
  static void name##_range64(const float complex *in, narrow *out, int64_t count, const int64_t *parameters) {     \
    (void)parameters;                                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                                          \
      tf_complex z = in[i];                                                                                        \
      out[i] = (narrow)(expression);                                                                               \
    }                                                                                                              \
  }                                                                                                                \
  static void name##_range128(const tf_complex *in, wide *out, int64_t count, const int64_t *parameters) {         \
    (void)parameters;                                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                                          \
      tf_complex z = in[i];                                                                                        \
      out[i] = (expression);                                                                                       \
    }                                                                                                              \
  }                                                                                                                \
  TF_MAP_KERNEL(name##_complex64, float complex, narrow, name##_range64)                                           \
  TF_MAP_KERNEL(name##_complex128, tf_complex, wide, name##_range128)

#define TF_DEFINE(name, f) TF_DEFINE_AS(name, float complex, tf_complex, f(z))
TF_FUNCTIONS(TF_DEFINE)
TF_DEFINE_AS(real, float, double, creal(z))
TF_DEFINE_AS(imag, float, double, cimag(z))
TF_DEFINE_AS(complex_abs, float, double, hypot(creal(z), cimag(z)))
TF_DEFINE_AS(angle, float, double, atan2(cimag(z), creal(z)))

/* Gradients: dy times the derivative, given the function's result y. Of tanh and sigmoid y is conjugated beforehand,
   the others conjugate it, and give 0 for a gradient of 0 also where the derivative is infinite; all is TensorFlow's. */

static tf_complex tf_multiply(tf_complex z, tf_complex w) {
  double a = creal(z), b = cimag(z), c = creal(w), d = cimag(w);
  return CMPLX(a * c - b * d, a * d + b * c);
}

static tf_complex tf_tanh_grad(tf_complex y, tf_complex dy) {
  double a = creal(y), b = cimag(y);
  return tf_multiply(dy, tf_multiply(CMPLX(1.0 - a, -b), CMPLX(1.0 + a, b)));
}

static tf_complex tf_sigmoid_grad(tf_complex y, tf_complex dy) {
  return tf_multiply(dy, tf_multiply(y, CMPLX(1.0 - creal(y), -cimag(y))));
}

static tf_complex tf_sqrt_grad(tf_complex y, tf_complex dy) {
  if (dy == 0.0) return 0.0;
  tf_complex z = tf_multiply(dy, tf_reciprocal(tf_conj(y)));
  return CMPLX(0.5 * creal(z), 0.5 * cimag(z));
}

static tf_complex tf_rsqrt_grad(tf_complex y, tf_complex dy) {
  if (dy == 0.0) return 0.0;
  tf_complex c = tf_conj(y), z = tf_multiply(tf_multiply(tf_multiply(dy, c), c), c);
  return CMPLX(-0.5 * creal(z), -0.5 * cimag(z));
}

static tf_complex tf_reciprocal_grad(tf_complex y, tf_complex dy) {
  return dy == 0.0 ? CMPLX(0.0, 0.0) : tf_neg(tf_multiply(tf_multiply(dy, tf_conj(y)), tf_conj(y)));
}

#define TF_GRADIENTS(X) X(tanh_grad) X(sigmoid_grad) X(sqrt_grad) X(rsqrt_grad) X(reciprocal_grad)
#define TF_DEFINE_GRADIENT(name)                                                                                   \
  TF_PAIR(name, complex64, float complex, tf_complex, (tf_complex), (float complex), (tf_##name(x, y)))            \
  TF_PAIR(name, complex128, tf_complex, tf_complex, (tf_complex), (tf_complex), (tf_##name(x, y)))
TF_GRADIENTS(TF_DEFINE_GRADIENT)

#define TF_NAMED_GRADIENT(name) TF_ENTRY(name##_complex64), TF_ENTRY(name##_complex128),
#define TF_NAMED(name, f) TF_ENTRY(name##_complex64), TF_ENTRY(name##_complex128),
TF_TABLE(unary_complex) = {
  TF_FUNCTIONS(TF_NAMED) TF_NAMED(real, ) TF_NAMED(imag, ) TF_NAMED(complex_abs, ) TF_NAMED(angle, )
  TF_GRADIENTS(TF_NAMED_GRADIENT) TF_END
};
