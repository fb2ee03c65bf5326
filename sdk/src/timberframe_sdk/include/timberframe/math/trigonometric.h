/* sin, cos, tan and the inverse functions: straight-line code that compilers turn into vector loops.
 *
 * Written once for both precisions: include precision_float32.h or precision_float64.h first, and for the first three
 * functions the reduction of arguments, which gives r in [-pi/4, pi/4] and a quadrant. */
#ifndef TIMBERFRAME_MATH_TRIGONOMETRIC_H
#define TIMBERFRAME_MATH_TRIGONOMETRIC_H

/* r with a = q pi/2 + r for 0 <= a <= TF_TRIGONOMETRIC_FAST; *quadrant has q in its low bits. */
static inline TF_REAL TF_F(reduce_half_pi)(TF_REAL a, TF_SIGNED *quadrant);

static inline TF_REAL TF_F(sin_reduced)(TF_REAL r) {
  TF_REAL r2 = r * r;
  return TF_F(fma)(r * r2, TF_F(sin_poly)(r2), r);
}

static inline TF_REAL TF_F(cos_reduced)(TF_REAL r) {
  TF_REAL r2 = r * r;
  return TF_F(fma)(r2 * r2, TF_F(cos_poly)(r2), TF_F(fma)(r2, -0.5f, 1.0f));
}

static inline TF_REAL TF_F(sin_quadrant)(TF_REAL r, TF_SIGNED quadrant) {
  TF_REAL y = quadrant & 1 ? TF_F(cos_reduced)(r) : TF_F(sin_reduced)(r);
  return TF_F(of_int)(TF_F(int_of)(y) ^ (TF_SIGNED)((TF_UNSIGNED)(quadrant & 2) << (TF_SIGN_BIT - 1)));
}

static inline TF_REAL TF_F(tan_quadrant)(TF_REAL r, TF_SIGNED quadrant) {
  TF_REAL sine = TF_F(sin_reduced)(r), cosine = TF_F(cos_reduced)(r);
  /* One division for both cases: -cos / sin or sin / cos. */
  TF_REAL numerator = quadrant & 1 ? -cosine : sine, denominator = quadrant & 1 ? sine : cosine;
  return numerator / denominator;
}

/* For |x| up to TF_TRIGONOMETRIC_FAST. */
static inline TF_REAL TF_F(sin_fast)(TF_REAL x) {
  TF_SIGNED quadrant;
  TF_REAL r = TF_F(reduce_half_pi)(TF_F(abs)(x), &quadrant);
  return TF_F(flip_sign)(TF_F(sin_quadrant)(r, quadrant), x);
}

static inline TF_REAL TF_F(cos_fast)(TF_REAL x) {
  TF_SIGNED quadrant;
  TF_REAL r = TF_F(reduce_half_pi)(TF_F(abs)(x), &quadrant);
  return TF_F(sin_quadrant)(r, quadrant + 1);
}

static inline TF_REAL TF_F(tan_fast)(TF_REAL x) {
  TF_SIGNED quadrant;
  TF_REAL r = TF_F(reduce_half_pi)(TF_F(abs)(x), &quadrant);
  return TF_F(flip_sign)(TF_F(tan_quadrant)(r, quadrant), x);
}

/* With z = (1 - |x|) / 2 and s = sqrt(z), acos(|x|) = 2 asin(s): the form for |x| > 1/2. */
static inline TF_REAL TF_F(asin)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x);
  int large = a > 0.5f;
  TF_REAL z = large ? 0.5f - 0.5f * a : a * a;
  TF_REAL s = large ? TF_SQRT(z) : a;
  TF_REAL y = TF_F(fma)(s * z, TF_F(asin_poly)(z), s);
  return TF_F(with_sign)(large ? TF_HALF_PI - 2.0f * y + TF_HALF_PI_LOW : y, x);
}

static inline TF_REAL TF_F(acos)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x);
  int large = a > 0.5f;
  TF_REAL z = large ? 0.5f - 0.5f * a : a * a;
  TF_REAL s = large ? TF_SQRT(z) : a;
  TF_REAL y = TF_F(fma)(s * z, TF_F(asin_poly)(z), s);
  TF_REAL outer = x < 0.0f ? 2.0f * (TF_HALF_PI - (y - TF_HALF_PI_LOW)) : 2.0f * y;
  TF_REAL inner = TF_HALF_PI - (TF_F(flip_sign)(y, x) - TF_HALF_PI_LOW);
  return large ? outer : inner;
}

/* With t = a, (a - 1) / (a + 1) or -1 / a, all within tan(pi/8), the angle is 0, pi/4 or pi/2 and atan(t). */
static inline TF_REAL TF_F(atan)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x);
  int high = a > TF_TAN_3PI_8, middle = a > TF_TAN_PI_8;
  TF_REAL numerator = high ? -1.0f : middle ? a - 1.0f : a;
  TF_REAL denominator = high ? a : middle ? a + 1.0f : 1.0f;
  TF_REAL base = high ? TF_HALF_PI : middle ? 0.5f * TF_HALF_PI : 0.0f;
  TF_REAL t = numerator / denominator;
  TF_REAL t2 = t * t;
  TF_REAL low = high ? TF_HALF_PI_LOW : middle ? 0.5f * TF_HALF_PI_LOW : 0.0f;
  return TF_F(with_sign)(base + (TF_F(fma)(t * t2, TF_F(atan_poly)(t2), t) + low), x);
}

#endif
