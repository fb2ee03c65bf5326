/* exp, log and what is made of them: straight-line code that compilers turn into vector loops.
 *
 * Written once for both precisions: include precision_float32.h or precision_float64.h first. Constants such as 0.5f
 * are exact in both.
 *
 * Every function is right for NaN, infinities, -0 and subnormals. Reductions, with n = nearest integer of x / ln 2:
 *   exp:        x = n ln 2 + r, exp(x) = 2^n exp(r)
 *   log:        x = 2^k m with m in [sqrt(1/2), sqrt(2)), log(x) = k ln 2 + log(m) */
#ifndef TIMBERFRAME_MATH_EXPONENTIAL_H
#define TIMBERFRAME_MATH_EXPONENTIAL_H

/* x between low and high; NaN stays. */
static inline TF_REAL TF_F(clamp)(TF_REAL x, TF_REAL low, TF_REAL high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/* x - n ln 2 for n = nearest integer of x / ln 2; *sum has n in its low bits. */
static inline TF_REAL TF_F(reduce_ln2)(TF_REAL x, TF_SIGNED *sum) {
  TF_REAL t = TF_F(fma)(x, TF_LOG2E, TF_ROUNDER);
  TF_REAL n = t - TF_ROUNDER;
  *sum = TF_F(int_of)(t);
  return TF_F(fma)(n, -TF_LN2_LOW, TF_F(fma)(n, -TF_LN2_HIGH, x));
}

static inline TF_REAL TF_F(exp)(TF_REAL x) {
  TF_SIGNED n;
  TF_REAL r = TF_F(reduce_ln2)(TF_F(clamp)(x, TF_EXP_LOWEST, TF_EXP_HIGHEST), &n);
  TF_REAL y = TF_F(fma)(r * r, TF_F(exp_poly)(r), 1.0f + r);
  /* 2^n in two factors: the second rounds results that are subnormal, and overflows. */
  TF_SIGNED part = n >> 1;
  return y * TF_F(power_of_two)(part) * TF_F(power_of_two)(n - part);
}

/* exp(x) for x <= 0, to the same bits in fewer steps; NaN stays. 2^(n + 64) exists for each n. */
static inline TF_REAL TF_F(decaying_exp)(TF_REAL x) {
  TF_SIGNED n;
  TF_REAL r = TF_F(reduce_ln2)(TF_EXP_LOWEST > x ? TF_EXP_LOWEST : x, &n);
  TF_REAL y = TF_F(fma)(r * r, TF_F(exp_poly)(r), 1.0f + r);
  return y * TF_F(power_of_two)(n + 64) * 0x1p-64f;
}

static inline TF_REAL TF_F(expm1)(TF_REAL x) {
  TF_SIGNED n;
  TF_REAL r = TF_F(reduce_ln2)(TF_F(clamp)(x, TF_EXPM1_LOWEST, TF_EXP_HIGHEST), &n);
  TF_REAL p = TF_F(fma)(r * r, TF_F(exp_poly)(r), r);
  TF_REAL scale = TF_F(power_of_two)(n - 1); /* half of 2^n, which itself may overflow */
  TF_REAL y = 2.0f * TF_F(fma)(p, scale, scale - 0.5f);
  return TF_F(with_sign)(scale == 0.5f ? p : y, x);
}

/* exp(x) / 2 for x >= 0, infinite where sinh(x) is; NaN stays. n is added to the bits, so that 2^n need not exist. */
static inline TF_REAL TF_F(half_exp)(TF_REAL x) {
  TF_SIGNED n;
  TF_REAL r = TF_F(reduce_ln2)(x, &n);
  TF_REAL y = TF_F(fma)(r * r, TF_F(exp_poly)(r), 1.0f + r);
  y = TF_F(of_int)((TF_SIGNED)((TF_UNSIGNED)TF_F(int_of)(y) + ((TF_UNSIGNED)(n - 1) << TF_MANTISSA)));
  return x <= TF_SINH_HIGHEST ? y : x * TF_INFINITY;
}

static inline TF_REAL TF_F(sinh)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x), a2 = a * a;
  TF_REAL e = TF_F(half_exp)(a);
  TF_REAL small = TF_F(fma)(a * a2, TF_F(sinh_poly)(a2), a);
  return TF_F(with_sign)(a < 1.0f ? small : e - 0.25f / e, x);
}

static inline TF_REAL TF_F(cosh)(TF_REAL x) {
  TF_REAL e = TF_F(half_exp)(TF_F(abs)(x));
  return e + 0.25f / e;
}

/* k ln 2 + log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1]. */
static inline TF_REAL TF_F(log_sum)(TF_REAL k, TF_REAL f) {
  TF_REAL f2 = f * f;
  TF_REAL tail = TF_F(fma)(f2, TF_F(fma)(f, TF_F(log_poly)(f), -0.5f), k * TF_LN2_LOW);
  return TF_F(fma)(k, TF_LN2_HIGH, f + tail);
}

/* a - b of bits: NaN and negative numbers, whose results are replaced later, may wrap. */
#define TF_BITS_MINUS(a, b) ((TF_SIGNED)((TF_UNSIGNED)(a) - (TF_UNSIGNED)(b)))

/* m in [sqrt(1/2), sqrt(2)) with x = 2^k m, from the bits of x; the exponent may lie beyond those of normal numbers. */
static inline TF_REAL TF_F(split)(TF_SIGNED bits, TF_REAL *k) {
  TF_SIGNED offset = TF_BITS_MINUS(bits, TF_ROOT_HALF_BITS);
  *k = TF_F(exponent)(offset);
  return TF_F(of_int)((offset & TF_MANTISSA_BITS) + TF_ROOT_HALF_BITS);
}

static inline TF_REAL TF_F(log)(TF_REAL x) {
  TF_REAL k;
  TF_SIGNED scaled = TF_BITS_MINUS(TF_F(int_of)(x * TF_UNIT), (TF_SIGNED)TF_MANTISSA << TF_MANTISSA);
  TF_REAL m = TF_F(split)(x < TF_SMALLEST_NORMAL ? scaled : TF_F(int_of)(x), &k);
  TF_REAL y = TF_F(log_sum)(k, m - 1.0f);
  y = x < TF_INFINITY ? y : x;
  y = x == 0.0f ? -TF_INFINITY : y;
  return x < 0.0f ? TF_NAN : y;
}

/* extra ln 2 + log(1 + x) for -1 <= x < TF_HUGE; the sign of a zero is lost. */
static inline TF_REAL TF_F(log1p_sum)(TF_REAL x, TF_REAL extra) {
  TF_SIGNED offset = TF_BITS_MINUS(TF_F(int_of)(1.0f + x), TF_ROOT_HALF_BITS);
  /* With k from the sum: 2^-k (1 + x) - 1 with one rounding. */
  TF_REAL scale = TF_F(of_int)(TF_BITS_MINUS(TF_ONE_BITS, offset & ~TF_MANTISSA_BITS));
  TF_REAL f = TF_F(fma)(x, scale, scale - 1.0f);
  return TF_F(log_sum)(TF_F(exponent)(offset) + extra, f);
}

/* extra ln 2 + log(1 + x) for x >= -1: in log1p of a huge x, 1 does not count and 2^-k may not exist. */
static inline TF_REAL TF_F(log1p_any)(TF_REAL x, TF_REAL extra) {
  int huge = x >= TF_HUGE;
  return TF_F(log1p_sum)(huge ? x * 0x1p-64f : x, huge ? extra + 64.0f : extra);
}

static inline TF_REAL TF_F(log1p)(TF_REAL x) {
  TF_REAL y = TF_F(log1p_any)(x, 0.0f);
  y = x < TF_INFINITY ? y : x;
  y = x == -1.0f ? -TF_INFINITY : y;
  return x < -1.0f ? TF_NAN : TF_F(with_sign)(y, x);
}

/* asinh(x) = log1p(x + x^2 / (1 + sqrt(1 + x^2))); from TF_LOG_2X on, log(2x) to within rounding. */
static inline TF_REAL TF_F(asinh)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x);
  int large = a >= TF_LOG_2X;
  TF_REAL square = a * a;
  TF_REAL u = a + square / (1.0f + TF_SQRT(1.0f + square));
  TF_REAL y = TF_F(log1p_any)(large ? a - 1.0f : u, large ? 1.0f : 0.0f);
  return TF_F(with_sign)(a < TF_INFINITY ? y : a, x);
}

/* acosh(1 + t) = log1p(t + sqrt(2t + t^2)). */
static inline TF_REAL TF_F(acosh)(TF_REAL x) {
  TF_REAL t = x - 1.0f;
  int large = x >= TF_LOG_2X;
  TF_REAL u = t + TF_SQRT(TF_F(fma)(t, t, 2.0f * t));
  TF_REAL y = TF_F(log1p_any)(large ? t : u, large ? 1.0f : 0.0f);
  y = x < TF_INFINITY ? y : x;
  return x < 1.0f ? TF_NAN : y;
}

/* atanh(x) = log1p(2x / (1 - x)) / 2. */
static inline TF_REAL TF_F(atanh)(TF_REAL x) {
  TF_REAL a = TF_F(abs)(x);
  TF_REAL y = 0.5f * TF_F(log1p_sum)(2.0f * a / (1.0f - a), 0.0f);
  y = a < 1.0f / TF_LOG_2X ? a : y; /* the next term is a^3 / 3; halving would lose a bit of a subnormal */
  y = a < 1.0f ? y : a == 1.0f ? TF_INFINITY : TF_NAN;
  return TF_F(with_sign)(y, x);
}

/* 1 / (1 + exp(-x)), written so that a tiny result of a negative x keeps its digits. */
static inline TF_REAL TF_F(sigmoid)(TF_REAL x) {
  TF_REAL e = TF_F(decaying_exp)(-TF_F(abs)(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)). */
static inline TF_REAL TF_F(softplus)(TF_REAL x) {
  TF_REAL y = TF_F(log1p_sum)(TF_F(decaying_exp)(-TF_F(abs)(x)), 0.0f);
  return x < 0.0f ? y : x + y;
}

#endif
