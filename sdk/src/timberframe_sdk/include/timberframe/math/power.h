/* Logarithms to base 2 with more bits than their argument's type has, powers, and angles, as straight-line code that
 * compilers vectorise.
 *
 * log2(x) = k + log2(m) with m in [sqrt(1/2), sqrt(2)) and, for s = (m - 1) / (m + 1),
 * log2(m) = 2 / ln 2 * (s + s^3 / 3 + s^5 / 5 + ...), |s| < 0.1716.
 * 2^t = 2^n * exp(f ln 2), |f| <= 1/2, by Taylor's series.
 * atan(r) / r = 1 + z P(z), z = r^2; P by Chebyshev interpolation, on [0, 1] in float and [0, tan(pi / 8)^2] in
 * double. */
#ifndef TIMBERFRAME_MATH_POWER_H
#define TIMBERFRAME_MATH_POWER_H

#include <timberframe/math/fma.h>
#include <timberframe/math/library.h>
#include <timberframe/math/rounding.h>

/* What C99 says of pow beyond |x|^y = magnitude: the sign, NaN for negative bases, and ones. */
#define POWER_SPECIAL(T, bits)                                                                                       \
  static inline T power_special_f##bits(T x, T y, T magnitude) {                                                     \
    const T half_y = y * (T)0.5f;                                                                                    \
    const int integer = tf_rint_f##bits(y) == y, odd = integer && tf_rint_f##bits(half_y) != half_y;                 \
    const T signed_result = odd ? tf_copy_sign_f##bits(magnitude, x) : magnitude;                                    \
    const T result = x < 0 && !integer && x > -TF_INFINITY##bits ? TF_NAN##bits : signed_result;                     \
    return y == 0 || x == 1 || (x == -1 && tf_abs_f##bits(y) == TF_INFINITY##bits) ? 1 : result;                     \
  }
POWER_SPECIAL(float, 32)
#ifndef TF_NO_FLOAT64
POWER_SPECIAL(double, 64)

#define POWER_SQRT_HALF 0x3fe6a09e667f3bcdu /* the bits of sqrt(1/2) */
#define POWER_SHIFTER 0x1.8p52              /* added to a small double, rounds it to an integer */

static inline uint64_t power_bits(double x) {
  return (uint64_t)tf_bits_of_f64(x);
}

static inline double power_double(uint64_t bits) {
  return tf_f64_of_bits((int64_t)bits);
}

/* 2^n as a double for integers n in [-1022, 1023], given as n + POWER_SHIFTER. */
static inline double power_scale(double shifted) {
  return power_double((power_bits(shifted) + 1023) << 52);
}

/* The k of x = 2^k m for positive normal x, and m. */
static inline double power_split(double x, double *m) {
  const uint64_t biased = (power_bits(x) - POWER_SQRT_HALF + ((uint64_t)1024 << 52)) >> 52;
  *m = power_double(power_bits(x) - ((biased - 1024) << 52));
  return power_double(power_bits(POWER_SHIFTER) + biased) - (POWER_SHIFTER + 1024);
}
#endif

#if TF_HAS_FMA
static inline float power_float(uint32_t bits) {
  return tf_f32_of_bits((int32_t)bits);
}

static inline uint32_t power_float_bits(float x) {
  return (uint32_t)tf_bits_of_f32(x);
}

/* 2^n as a float for integers n in [-126, 127], given as n + 1.5 * 2^23. */
static inline float power_float_scale(float shifted) { return power_float((power_float_bits(shifted) + 127) << 23); }

typedef struct power_float_pair {
  float high, low; /* the unevaluated sum of both */
} power_float_pair;

/* log2 of a positive normal x: what the pair leaves out is below 2^-29 of it. */
static inline power_float_pair power_log2_pair(float x) {
  const float shifter = 0x1.8p23f;
  const uint32_t offset = power_float_bits(x) - 0x3f3504f3u + (256u << 23); /* less the bits of sqrt(1/2) */
  const float m = power_float((offset & 0x7fffffu) + 0x3f3504f3u);
  const float k = power_float(power_float_bits(shifter) + (offset >> 23)) - (shifter + 256);
  const float c = m + 1, c_low = m - (c - 1), f = m - 1, inverse = 1 / c;
  const float s = f * inverse, s_low = tf_fused_f32(-s, c_low, tf_fused_f32(-s, c, f)) * inverse;
  const float z = s * s, z2 = z * z;
  const float p = tf_fused_f32(tf_fused_f32(z, 1 / 9.0f, 1 / 7.0f), z2, tf_fused_f32(z, 1 / 5.0f, 1 / 3.0f));
  const float cube = (s * z) * p;
  const float sum = s + cube, sum_low = (s - sum) + cube + s_low;
  const float factor = 0x1.715476p+1f, factor_low = 0x1.4ae0cp-25f; /* 2 / ln 2 */
  const float l = sum * factor;
  const float l_low = tf_fused_f32(sum_low, factor, tf_fused_f32(sum, factor_low, tf_fused_f32(sum, factor, -l)));
  const float high = k + l;
  const power_float_pair result = {high, (k - high) + l + l_low};
  return result;
}

/* 2^g for |g| just above 1/2 at most. The terms (ln 2 g)^i / i! are added in pairs, which makes a short chain. */
static inline float power_exp2_float(float g) {
  const float g2 = g * g;
  const float e01 = tf_fused_f32(g, 0x1.62e43p-1f, 1.0f), e23 = tf_fused_f32(g, 0x1.c6b08ep-5f, 0x1.ebfbep-3f);
  const float e45 = tf_fused_f32(g, 0x1.5d87fep-10f, 0x1.3b2ab6p-7f);
  const float e67 = tf_fused_f32(g, 0x1.ffcbfcp-17f, 0x1.430912p-13f);
  return tf_fused_f32(tf_fused_f32(tf_fused_f32(e67, g2, e45), g2, e23), g2, e01);
}

/* |x|^y in floats. The power magnifies the logarithm's error by up to 150, so the logarithm is a pair; the result
 * is within some five units in the last place. */
static inline float power_magnitude_float32(float x, float y) {
  const float shifter = 0x1.8p23f, small = 0x1p-126f;
  const float a = tf_abs_f32(x);
  const power_float_pair l = power_log2_pair(a < small ? a * 0x1p24f : a);
  const float shift = a < small ? -24 : 0, shifted_high = l.high + shift;
  const float low = a < small ? (shift - shifted_high) + l.high + l.low : l.low;
  const float high = a == 0 ? -TF_INFINITY32 : a < TF_INFINITY32 ? shifted_high : a;
  const float t = y * high;
  const float near = t > 200 ? 200 : t < -200 ? -200 : t;
  const float t_low = tf_abs_f32(t) < 200 ? tf_fused_f32(y, shifted_high, -t) + y * low : 0;
  const float rounded = near + shifter, n = rounded - shifter;
  const float e = power_exp2_float((near - n) + t_low);
  /* In two steps, since 2^n may be no float where the result is one; only the second one may round. */
  const float part = n * 0.5f + shifter, rest = n - (part - shifter) + shifter;
  const float result = e * power_float_scale(part) * power_float_scale(rest);
  return t == t ? result : t;
}

/* x^y where x is positive, normal and finite, and the result normal: else `rare` is set and the result means
 * nothing. */
static inline float power_usual_float32(float x, float y, int *rare) {
  const float shifter = 0x1.8p23f;
  const power_float_pair l = power_log2_pair(x);
  const float t = y * l.high, t_low = tf_fused_f32(y, l.low, tf_fused_f32(y, l.high, -t));
  const float rounded = t + shifter, n = rounded - shifter;
  *rare |= !(x >= 0x1p-126f) | !(x < TF_INFINITY32) | !(tf_abs_f32(t) < 125);
  return power_exp2_float((t - n) + t_low) * power_float_scale(rounded);
}

static inline float power_float32_of(float x, float y) {
  return power_special_f32(x, y, power_magnitude_float32(x, y));
}
#else
/* log2 of a positive normal x to about 2^-40 of its value: enough for a float's power. */
static inline double power_log2_short(double x) {
  double m;
  const double k = power_split(x, &m);
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1 / 13.0;
  p = tf_fma_f64(p, z, 1 / 11.0);
  p = tf_fma_f64(p, z, 1 / 9.0);
  p = tf_fma_f64(p, z, 1 / 7.0);
  p = tf_fma_f64(p, z, 1 / 5.0);
  p = tf_fma_f64(p, z, 1 / 3.0);
  p = tf_fma_f64(p, z, 1.0);
  return tf_fma_f64(s * p, 0x1.71547652b82fep+1, k);
}

/* log2 of |x| for any float x: -infinity for zeros, infinity and NaN as they come. */
static inline double power_log2_float32(float x) {
  const double a = tf_abs_f64((double)x);
  const double l = power_log2_short(a);
  return a == 0 ? -TF_INFINITY64 : a < TF_INFINITY64 ? l : a;
}

/* 2^t to about 2^-36 of its value, for any t. */
static inline double power_exp2_short(double t) {
  const double near = t > 1000 ? 1000 : t < -1000 ? -1000 : t;
  const double shifted = near + POWER_SHIFTER, f = near - (shifted - POWER_SHIFTER);
  double p = 0x1.e4cf5158b8ecap-28; /* (ln 2)^i / i!, i from 10 down */
  p = tf_fma_f64(p, f, 0x1.b5253d395e7c4p-24);
  p = tf_fma_f64(p, f, 0x1.62c0223a5c824p-20);
  p = tf_fma_f64(p, f, 0x1.ffcbfc588b0c7p-17);
  p = tf_fma_f64(p, f, 0x1.430912f86c787p-13);
  p = tf_fma_f64(p, f, 0x1.5d87fe78a6731p-10);
  p = tf_fma_f64(p, f, 0x1.3b2ab6fba4e77p-7);
  p = tf_fma_f64(p, f, 0x1.c6b08d704a0c0p-5);
  p = tf_fma_f64(p, f, 0x1.ebfbdff82c58fp-3);
  p = tf_fma_f64(p, f, 0x1.62e42fefa39efp-1);
  p = tf_fma_f64(p, f, 1.0);
  const double result = p * power_scale(shifted);
  return t == t ? result : t;
}

static inline float power_float32_of(float x, float y) {
  return power_special_f32(x, y, (float)power_exp2_short((double)y * power_log2_float32(x)));
}
#endif

#ifndef TF_NO_FLOAT64
#if TF_HAS_FMA
typedef struct power_pair {
  double high, low; /* the unevaluated sum of both */
} power_pair;

/* log2 of a positive normal x to about 2^-64 of its value. */
static inline power_pair power_log2_long(double x) {
  double m;
  const double k = power_split(x, &m);
  const double c = m + 1, c_low = m - (c - 1), f = m - 1;
  const double s = f / c;
  const double s_low = (tf_fused_f64(-s, c, f) - s * c_low) / c;
  const double z = s * s, z_low = tf_fused_f64(s, s, -z) + 2 * s * s_low;
  double p = 1 / 23.0;
  p = tf_fused_f64(p, z, 1 / 21.0);
  p = tf_fused_f64(p, z, 1 / 19.0);
  p = tf_fused_f64(p, z, 1 / 17.0);
  p = tf_fused_f64(p, z, 1 / 15.0);
  p = tf_fused_f64(p, z, 1 / 13.0);
  p = tf_fused_f64(p, z, 1 / 11.0);
  p = tf_fused_f64(p, z, 1 / 9.0);
  p = tf_fused_f64(p, z, 1 / 7.0);
  p = tf_fused_f64(p, z, 1 / 5.0);
  /* w = z / 3 + z^2 p, of which the first part needs all bits: it is up to 1/100 of the result. */
  const double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
  const double u = z * third, u_low = tf_fused_f64(z, third, -u) + z * third_low + z_low * third;
  const double q = z * z * p;
  const double w = u + q, w_low = (u - w) + q + u_low;
  const double v = s * w, v_low = tf_fused_f64(s, w, -v) + s * w_low + s_low * w;
  const double sum = s + v, sum_low = (s - sum) + v + (s_low + v_low);
  const double scale = 0x1.71547652b82fep+1, scale_low = 0x1.777d0ffda0d24p-55; /* 2 / ln 2 */
  const double l = sum * scale, l_low = tf_fused_f64(sum, scale, -l) + sum * scale_low + sum_low * scale;
  const double high = k + l;
  const power_pair result = {high, (k - high) + l + l_low};
  return result;
}

/* log2 of |x| for finite x that is not 0. */
static inline power_pair power_log2_float64(double x) {
  const double a = tf_abs_f64(x), scaled = a < 0x1p-1022 ? a * 0x1p54 : a;
  const power_pair l = power_log2_long(scaled);
  const double shift = a < 0x1p-1022 ? -54 : 0, high = l.high + shift;
  const power_pair result = {high, a < 0x1p-1022 ? (shift - high) + l.high + l.low : l.low};
  return result;
}

static inline double power_float64_of(double x, double y) {
  const double a = tf_abs_f64(x);
  const power_pair l = power_log2_float64(x);
  const double special = a == 0 ? -TF_INFINITY64 : a < TF_INFINITY64 ? l.high : a;
  const double t = y * special;
  const double near = t > 1100 ? 1100 : t < -1100 ? -1100 : t;
  const double t_low = tf_abs_f64(t) < 1100 ? tf_fused_f64(y, l.high, -t) + y * l.low : 0;
  const double shifted = near + POWER_SHIFTER, n = shifted - POWER_SHIFTER;
  const double f = (near - n) + t_low;
  double p = 0x1.816193166d0f9p-40; /* (ln 2)^i / i!, i from 13 down */
  p = tf_fused_f64(p, f, 0x1.c3bd650fc2986p-36);
  p = tf_fused_f64(p, f, 0x1.e8cac7351bb25p-32);
  p = tf_fused_f64(p, f, 0x1.e4cf5158b8ecap-28);
  p = tf_fused_f64(p, f, 0x1.b5253d395e7c4p-24);
  p = tf_fused_f64(p, f, 0x1.62c0223a5c824p-20);
  p = tf_fused_f64(p, f, 0x1.ffcbfc588b0c7p-17);
  p = tf_fused_f64(p, f, 0x1.430912f86c787p-13);
  p = tf_fused_f64(p, f, 0x1.5d87fe78a6731p-10);
  p = tf_fused_f64(p, f, 0x1.3b2ab6fba4e77p-7);
  p = tf_fused_f64(p, f, 0x1.c6b08d704a0c0p-5);
  p = tf_fused_f64(p, f, 0x1.ebfbdff82c58fp-3);
  p = tf_fused_f64(p, f, 0x1.62e42fefa39efp-1);
  p = tf_fused_f64(p, f, 1.0);
  /* In two steps, since 2^n may be no double where the result is one; only the second one may round. */
  const double part = n * 0.5 + POWER_SHIFTER, rest = n - (part - POWER_SHIFTER) + POWER_SHIFTER;
  const double magnitude = p * power_scale(part) * power_scale(rest);
  return power_special_f64(x, y, t == t ? magnitude : t);
}
#else
static inline double power_float64_of(double x, double y) {
  return pow(x, y); /* needs products with twice the bits */
}
#endif

/* Natural logarithms of y and of 1 + y: NaN below 0, -infinity at 0. */
#if TF_HAS_FMA
static inline double power_log_special(double x, double logarithm) {
  const double positive = x < TF_INFINITY64 ? logarithm : x;
  return x > 0 ? positive : x == 0 ? -TF_INFINITY64 : TF_NAN64;
}

static inline double power_log_float64(double y) {
  const power_pair l = power_log2_float64(y);
  const double ln2 = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
  return power_log_special(y, tf_fused_f64(l.high, ln2, tf_fused_f64(l.high, ln2_low, l.low * ln2)));
}

static inline double power_log1p_float64(double y) {
  const double u = 1 + y, lost = y < 1 ? y - (u - 1) : 1 - (u - y);
  return y == 0 ? y : power_log_special(u, power_log_float64(u) + lost / u);
}
#else
static inline double power_log_float64(double y) { return log(y); }
static inline double power_log1p_float64(double y) { return log1p(y); }
#endif
#endif

/* The angle of the point (x, y), in (-pi, pi]. */
static inline float angle_float32(float y, float x) {
  const float a = tf_abs_f32(y), b = tf_abs_f32(x), small = a < b ? a : b, large = a < b ? b : a;
  const float ratio = small / large;
  const float r = large == 0 ? 0 : small == TF_INFINITY32 ? 1 : ratio, z = r * r;
  float p = -0.00093629947195f;
  p = tf_fma_f32(p, z, 0.00620725453378f);
  p = tf_fma_f32(p, z, -0.0192610813228f);
  p = tf_fma_f32(p, z, 0.0383274459831f);
  p = tf_fma_f32(p, z, -0.0576071608313f);
  p = tf_fma_f32(p, z, 0.074174969643f);
  p = tf_fma_f32(p, z, -0.0903674234207f);
  p = tf_fma_f32(p, z, 0.111047067886f);
  p = tf_fma_f32(p, z, -0.142853179639f);
  p = tf_fma_f32(p, z, 0.199999902759f);
  p = tf_fma_f32(p, z, -0.333333332933f);
  const float first = tf_fma_f32(r * z, p, r);
  const float quarter = a > b ? 0x1.921fb6p+0f - first : first;
  const float angle = tf_copy_sign_f32(1, x) < 0 ? 0x1.921fb6p+1f - quarter : quarter;
  const float result = tf_copy_sign_f32(angle, y);
  return x != x || y != y ? x + y : result;
}

#ifndef TF_NO_FLOAT64
static inline double angle_float64(double y, double x) {
  const double a = tf_abs_f64(y), b = tf_abs_f64(x), small = a < b ? a : b, large = a < b ? b : a;
  const double ratio = small / large;
  const double r = large == 0 ? 0 : small == TF_INFINITY64 ? 1 : ratio;
  const int steep = r > 0x1.a827999fcef32p-2; /* tan(pi / 8): take pi / 4 away */
  const double turned = (r - 1) / (r + 1), s = steep ? turned : r, z = s * s;
  double p = -0x1.c81291cfc455fp-7;
  p = tf_fma_f64(p, z, 0x1.f5ef74d05428dp-6);
  p = tf_fma_f64(p, z, -0x1.503c4469943acp-5);
  p = tf_fma_f64(p, z, 0x1.829ce3237ab26p-5);
  p = tf_fma_f64(p, z, -0x1.aebd1fa559894p-5);
  p = tf_fma_f64(p, z, 0x1.e1d8e9bffe59dp-5);
  p = tf_fma_f64(p, z, -0x1.1110cee80b516p-4);
  p = tf_fma_f64(p, z, 0x1.3b13aea9e84b6p-4);
  p = tf_fma_f64(p, z, -0x1.745d173565149p-4);
  p = tf_fma_f64(p, z, 0x1.c71c71c6ddbfcp-4);
  p = tf_fma_f64(p, z, -0x1.24924924920adp-3);
  p = tf_fma_f64(p, z, 0x1.9999999999997p-3);
  p = tf_fma_f64(p, z, -0x1.5555555555555p-2);
  const double base = tf_fma_f64(s * z, p, s);
  const double first = steep ? 0x1.921fb54442d18p-1 + (base + 0x1.1a62633145c07p-55) : base;
  const double quarter = a > b ? 0x1.921fb54442d18p+0 - (first - 0x1.1a62633145c07p-54) : first;
  const double angle = tf_copy_sign_f64(1, x) < 0 ? 0x1.921fb54442d18p+1 - (quarter - 0x1.1a62633145c07p-53) : quarter;
  const double result = tf_copy_sign_f64(angle, y);
  return x != x || y != y ? x + y : result;
}
#endif

#endif
