/* Gamma, Poisson and binomial numbers by rejection; the arithmetic is float64's in every dtype. */
#include <timberframe/random/rejection.h>

#include "common/half.h"
#include "fill.h"

enum { OUTPUT_GRAIN = 256 };

typedef double draw_number(const philox *g, int64_t index, const double *parameters);

/* Output [sample, parameter] is number parameter * samples + sample of the stream. */
typedef struct rejection_job {
  philox generator;
  draw_number *draw;
  const tf_tensor *parameter;
  tf_tensor *out;
  const tf_tensor *counts, *probs;
  const int64_t *indices; /* of counts and probs, for each pair */
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

/* parameters after those of the stream: number of the input with the parameters of the distribution. */
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
    const double n = element(job->counts, job->indices[2 * pair]), p = element(job->probs, job->indices[2 * pair + 1]);
    const double rarer = p > 0.5 ? in_dtype(job->probs, 1 - p) : p;
    const double given[] = {n, p, rarer, in_dtype(job->counts, n * rarer) >= 10};
    set_element(job->out, i % job->samples * job->parameters + pair, binomial_number(&job->generator, i, given));
  }
}

/* parameters after those of the stream: number of the input counts, which probs follows; pairs; then for each pair the
 * indices of its count and its probability. */
static int32_t random_binomial(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                               const int64_t *parameters) {
  const int64_t *own = parameters + PHILOX_PARAMETERS;
  rejection_job job = {.counts = inputs[own[0]], .probs = inputs[own[0] + 1], .out = outputs[0], .parameters = own[1],
                       .indices = own + 2};
  const int32_t code = philox_open(context, inputs, parameters, &job.generator);
  if (code || outputs[0]->size == 0) return code;
  job.samples = outputs[0]->size / job.parameters;
  context->parallel_for(context, outputs[0]->size, OUTPUT_GRAIN, binomial_range, &job);
  return TF_OK;
}

TF_TABLE(random_rejection) = {
  TF_ENTRY(random_gamma), TF_ENTRY(random_poisson), TF_ENTRY(random_binomial), TF_END,
};
