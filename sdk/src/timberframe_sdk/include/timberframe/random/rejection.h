/* Gamma, Poisson and binomial numbers by rejection, in float64. Each output begins at a block of its own, so that what
 * it rejects moves no other. */
#ifndef TIMBERFRAME_RANDOM_REJECTION_H
#define TIMBERFRAME_RANDOM_REJECTION_H

#include <timberframe/math/bits.h>
#include <timberframe/math/library.h>
#include <timberframe/random/philox.h>
#include <timberframe/random/uniform.h>

#define REJECTION_PI 3.141592653589793
#define REJECTION_SAMPLES_PER_OUTPUT 256
#define REJECTION_INVERSION_SAMPLES 42

/* A generator that hands out one number at a time; of a block's numbers the last comes first. */
typedef struct sampler {
  const philox *generator;
  uint64_t block;
  int normals_left, uniforms_left;
  double normals[2], uniforms[2];
} sampler;

static inline sampler sampler_at(const philox *g, uint64_t block) {
  const sampler made = {g, block, 0, 0, {0, 0}, {0, 0}};
  return made;
}

static inline double next_uniform(sampler *s) {
  if (s->uniforms_left == 0) {
    uint32_t x[4];
    philox_block(s->generator, s->block++, x);
    s->uniforms[0] = uniform_float64(x[0], x[1]);
    s->uniforms[1] = uniform_float64(x[2], x[3]);
    s->uniforms_left = 2;
  }
  return s->uniforms[--s->uniforms_left];
}

static inline double next_normal(sampler *s) {
  if (s->normals_left == 0) {
    uint32_t x[4];
    philox_block(s->generator, s->block++, x);
    const double u = uniform_float64(x[0], x[1]), angle = 2 * REJECTION_PI * uniform_float64(x[2], x[3]);
    const double radius = sqrt(-2 * log(u < 1.0e-7 ? 1.0e-7 : u));
    s->normals[0] = sin(angle) * radius;
    s->normals[1] = cos(angle) * radius;
    s->normals_left = 2;
  }
  return s->normals[--s->normals_left];
}

/* Marsaglia and Tsang, ACM TOMS 26(3), 2000. */
static inline double gamma_number(const philox *g, int64_t index, const double *alpha) {
  sampler s = sampler_at(g, REJECTION_SAMPLES_PER_OUTPUT * (uint64_t)index);
  const double a = *alpha;
  if (a == 1) return -log1p(-next_uniform(&s));
  if (a != a) return a;
  const double d = a + (a < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  for (;;) {
    const double x = next_normal(&s);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = next_uniform(&s);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
      return a < 1 ? d * v * pow(next_uniform(&s), 1 / a) : d * v;
    }
  }
}

/* Transformed rejection: Hoermann, Insurance: Mathematics and Economics 12, 1993. */
static inline double large_poisson(sampler *s, double rate) {
  const double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = next_uniform(s) - 0.5, v = next_uniform(s), shifted = 0.5 - tf_abs_f64(u);
    const double k = floor((2 * a / shifted + b) * u + rate + 0.43);
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double bound = -rate + k * log_rate - tf_log_gamma_f64(k + 1);
    if (log(v * inverse_alpha / (a / (shifted * shifted) + b)) <= bound) return k;
  }
}

static inline double poisson_number(const philox *g, int64_t index, const double *parameter) {
  sampler s = sampler_at(g, REJECTION_SAMPLES_PER_OUTPUT * (uint64_t)index);
  const double rate = *parameter;
  if (!(rate >= 0) || rate == TF_INFINITY64) return TF_NAN64;
  if (rate >= 10) return large_poisson(&s, rate);
  const double limit = exp(-rate);
  double product = 1, count = 0;
  for (;; count++) {
    product *= next_uniform(&s);
    if (product <= limit) return count;
  }
}

TF_STATIC_TABLE double stirling_tails[] = {
  0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
  0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
};

/* What Stirling's approximation of log k! leaves out. */
static inline double stirling_tail(double k) {
  if (k <= 9) return stirling_tails[(int)k];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Hoermann, Journal of Statistical Computation and Simulation 46, 1993. */
static inline double transformed_binomial(sampler *s, double n, double p) {
  const double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = n * p + 0.5, squeeze = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = floor((n + 1) * p);
  for (;;) {
    const double u = next_uniform(s) - 0.5, v = next_uniform(s), shifted = 0.5 - tf_abs_f64(u);
    const double k = floor((2 * a / shifted + b) * u + center);
    if (shifted >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > n) continue;
    const double bound = (m + 0.5) * log((m + 1) / (r * (n - m + 1))) + (n + 1) * log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * log(r * (n - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(n - m) -
                         stirling_tail(k) - stirling_tail(n - k);
    if (log(v * alpha / (a / (shifted * shifted) + b)) <= bound) return k;
  }
}

/* The gaps between successes are geometric; as many as fit into the trials are counted. */
static inline double inverted_binomial(sampler *s, double n, double p) {
  double total = 0, found = 0;
  for (;; found++) {
    total += ceil(log(next_uniform(s)) / log1p(-p));
    if (total > n) return found;
  }
}

/* parameters: trials, probability, probability of the rarer outcome, and whether transformed rejection suits it. */
static inline double binomial_number(const philox *g, int64_t index, const double *parameters) {
  const double n = parameters[0], p = parameters[1], rarer = parameters[2];
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p != p || n != n) return TF_NAN64;
  const uint64_t run = parameters[3] > 0 ? REJECTION_SAMPLES_PER_OUTPUT : REJECTION_INVERSION_SAMPLES;
  sampler s = sampler_at(g, run * (uint64_t)index);
  const double k = parameters[3] > 0 ? transformed_binomial(&s, n, rarer) : inverted_binomial(&s, n, rarer);
  return p > 0.5 ? n - k : k;
}

#endif
