/* Gamma, Poisson and binomial numbers by rejection. Each output begins at a block of its own, so that what it rejects
 * moves no other; the arithmetic is float64's in every dtype. */
#define _DEFAULT_SOURCE /* lgamma_r */
#include <math.h>

#include "common/half.h"
#include "fill.h"

#define TF_PI 3.141592653589793

enum { SAMPLES_PER_OUTPUT = 256, INVERSION_SAMPLES = 42, OUTPUT_GRAIN = 256 };

/* A generator that hands out one number at a time; of a block's numbers the last comes first. */
typedef struct sampler {
  const philox *generator;
  uint64_t block;
  int normals_left, uniforms_left;
  double normals[2], uniforms[2];
} sampler;

static inline sampler sampler_at(const philox *g, uint64_t block) {
  return (sampler){.generator = g, .block = block};
}

static double next_uniform(sampler *s) {
  if (s->uniforms_left == 0) {
    uint32_t x[4];
    philox_block(s->generator, s->block++, x);
    s->uniforms[0] = uniform_float64(x[0], x[1]);
    s->uniforms[1] = uniform_float64(x[2], x[3]);
    s->uniforms_left = 2;
  }
  return s->uniforms[--s->uniforms_left];
}

static double next_normal(sampler *s) {
  if (s->normals_left == 0) {
    uint32_t x[4];
    philox_block(s->generator, s->block++, x);
    const double u = uniform_float64(x[0], x[1]), angle = 2 * TF_PI * uniform_float64(x[2], x[3]);
    const double radius = sqrt(-2 * log(u < 1.0e-7 ? 1.0e-7 : u));
    s->normals[0] = sin(angle) * radius;
    s->normals[1] = cos(angle) * radius;
    s->normals_left = 2;
  }
  return s->normals[--s->normals_left];
}

/* Marsaglia and Tsang, ACM TOMS 26(3), 2000. */
static double gamma_number(const philox *g, int64_t index, const double *alpha) {
  sampler s = sampler_at(g, SAMPLES_PER_OUTPUT * (uint64_t)index);
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

static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign); /* lgamma itself writes a global */
}

/* Transformed rejection: Hoermann, Insurance: Mathematics and Economics 12, 1993. */
static double large_poisson(sampler *s, double rate) {
  const double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = next_uniform(s) - 0.5, v = next_uniform(s), shifted = 0.5 - fabs(u);
    const double k = floor((2 * a / shifted + b) * u + rate + 0.43);
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    if (log(v * inverse_alpha / (a / (shifted * shifted) + b)) <= -rate + k * log_rate - log_gamma(k + 1)) return k;
  }
}

static double poisson_number(const philox *g, int64_t index, const double *parameter) {
  sampler s = sampler_at(g, SAMPLES_PER_OUTPUT * (uint64_t)index);
  const double rate = *parameter;
  if (!(rate >= 0) || isinf(rate)) return NAN;
  if (rate >= 10) return large_poisson(&s, rate);
  const double limit = exp(-rate);
  double product = 1, count = 0;
  for (;; count++) {
    product *= next_uniform(&s);
    if (product <= limit) return count;
  }
}

/* What Stirling's approximation of log k! leaves out. */
static double stirling_tail(double k) {
  static const double tails[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509,
                                 0.0166446911898211,  0.0138761288230707,  0.0118967099458917,  0.0104112652619720,
                                 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return tails[(int)k];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Hoermann, Journal of Statistical Computation and Simulation 46, 1993. */
static double transformed_binomial(sampler *s, double n, double p) {
  const double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = n * p + 0.5, squeeze = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = floor((n + 1) * p);
  for (;;) {
    const double u = next_uniform(s) - 0.5, v = next_uniform(s), shifted = 0.5 - fabs(u);
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
static double inverted_binomial(sampler *s, double n, double p) {
  double total = 0, found = 0;
  for (;; found++) {
    total += ceil(log(next_uniform(s)) / log1p(-p));
    if (total > n) return found;
  }
}

/* parameters: trials, probability, probability of the rarer outcome, and whether transformed rejection suits it. */
static double binomial_number(const philox *g, int64_t index, const double *parameters) {
  const double n = parameters[0], p = parameters[1], rarer = parameters[2];
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p != p || n != n) return NAN;
  sampler s = sampler_at(g, (parameters[3] ? SAMPLES_PER_OUTPUT : INVERSION_SAMPLES) * (uint64_t)index);
  const double k = parameters[3] ? transformed_binomial(&s, n, rarer) : inverted_binomial(&s, n, rarer);
  return p > 0.5 ? n - k : k;
}

typedef double draw_number(const philox *g, int64_t index, const double *parameters);

/* Output [sample, parameter] is number parameter * samples + sample of the stream. */
typedef struct rejection_job {
  philox generator;
  draw_number *draw;
  const tf_tensor *parameter;
  tf_tensor *out;
  const tf_tensor *counts, *probs;
  const int64_t *places; /* of counts and probs, for each pair */
  int64_t parameters, samples;
} rejection_job;

static double element(const tf_tensor *x, int64_t i) {
  switch (x->dtype) {
    case TF_FLOAT32: return (double)((const float *)x->data)[i];
    case TF_FLOAT64: return ((const double *)x->data)[i];
    case TF_FLOAT16: return (double)tf_float32_from_float16(((const tf_float16 *)x->data)[i]);
    case TF_BFLOAT16: return (double)tf_float32_from_bfloat16(((const tf_bfloat16 *)x->data)[i]);
    case TF_INT32: return (double)((const int32_t *)x->data)[i];
    default: return (double)((const int64_t *)x->data)[i];
  }
}

static void set_element(tf_tensor *x, int64_t i, double value) {
  switch (x->dtype) {
    case TF_FLOAT32: ((float *)x->data)[i] = (float)value; break;
    case TF_FLOAT64: ((double *)x->data)[i] = value; break;
    case TF_FLOAT16: ((tf_float16 *)x->data)[i] = tf_float16_from_float32((float)value); break;
    case TF_BFLOAT16: ((tf_bfloat16 *)x->data)[i] = tf_bfloat16_from_float32((float)value); break;
    case TF_INT32: ((int32_t *)x->data)[i] = value != value ? 0 : (int32_t)value; break;
    default: ((int64_t *)x->data)[i] = value != value ? 0 : (int64_t)value; break;
  }
}

static void rejection_range(void *argument, int64_t begin, int64_t end) {
  const rejection_job *job = argument;
  for (int64_t i = begin; i < end; i++) {
    const double parameter = element(job->parameter, i / job->samples);
    set_element(job->out, i % job->samples * job->parameters + i / job->samples,
                job->draw(&job->generator, i, &parameter));
  }
}

/* parameters behind those of the stream: number of the input with the parameters of the distribution. */
static int32_t draw_all(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                        const int64_t *parameters, draw_number *draw) {
  const tf_tensor *given = inputs[parameters[PHILOX_PARAMETERS]];
  rejection_job job = {.draw = draw, .parameter = given, .out = outputs[0], .parameters = given->size};
  const int32_t code = philox_open(context, inputs, parameters, &job.generator);
  if (code || outputs[0]->size == 0) return code;
  job.samples = outputs[0]->size / given->size;
  context->parallel_for(context, outputs[0]->size, OUTPUT_GRAIN, rejection_range, &job);
  return TF_OK;
}

static int32_t random_gamma(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            const int64_t *parameters) {
  return draw_all(context, inputs, outputs, parameters, gamma_number);
}

static int32_t random_poisson(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const int64_t *parameters) {
  return draw_all(context, inputs, outputs, parameters, poisson_number);
}

/* The mean that chooses the method is computed in the dtype of the parameters. */
static double in_dtype(const tf_tensor *x, double value) {
  switch (x->dtype) {
    case TF_FLOAT32: return (double)(float)value;
    case TF_FLOAT16: return (double)tf_float32_from_float16(tf_float16_from_float32((float)value));
    default: return value;
  }
}

static void binomial_range(void *argument, int64_t begin, int64_t end) {
  const rejection_job *job = argument;
  for (int64_t i = begin; i < end; i++) {
    const int64_t pair = i / job->samples;
    const double n = element(job->counts, job->places[2 * pair]), p = element(job->probs, job->places[2 * pair + 1]);
    const double rarer = p > 0.5 ? in_dtype(job->probs, 1 - p) : p;
    const double given[] = {n, p, rarer, in_dtype(job->counts, n * rarer) >= 10};
    set_element(job->out, i % job->samples * job->parameters + pair, binomial_number(&job->generator, i, given));
  }
}

/* parameters behind those of the stream: number of the input counts, which probs follows; pairs; then for each pair the
 * places of its count and its probability. */
static int32_t random_binomial(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                               const int64_t *parameters) {
  const int64_t *own = parameters + PHILOX_PARAMETERS;
  rejection_job job = {.counts = inputs[own[0]], .probs = inputs[own[0] + 1], .out = outputs[0], .parameters = own[1],
                       .places = own + 2};
  const int32_t code = philox_open(context, inputs, parameters, &job.generator);
  if (code || outputs[0]->size == 0) return code;
  job.samples = outputs[0]->size / job.parameters;
  context->parallel_for(context, outputs[0]->size, OUTPUT_GRAIN, binomial_range, &job);
  return TF_OK;
}

TF_TABLE(random_rejection) = {
  TF_ENTRY(random_gamma), TF_ENTRY(random_poisson), TF_ENTRY(random_binomial), TF_END,
};
