/* FakeQuantWithMinMax*: numbers rounded to those that quantized integers stand for, and the gradients. The range, or that of
 * each channel, is moved until 0 is one of them, by float32's arithmetic in the order of the op's reference. */
#include <math.h>

#include "common/table.h"

enum { VALUES_A_UNIT = 16384 };

/* The parameters of the kernels, in this order. tensors: whether the ends are inputs, else they are low and high. */
typedef struct quant_shape {
  int64_t rows, channels, bits, narrow, tensors, outputs;
  double low, high;
} quant_shape;

/* Of each channel: the least and the greatest number, the distance of neighbours and its inverse, the integer of 0. Where
 * both ends are 0 all results are 0, and no input is outside. */
typedef struct quant_ranges {
  float *lowest, *highest, *scale, *inverse, *zero;
} quant_ranges;

typedef struct quant_job {
  const quant_shape *shape;
  quant_ranges ranges;
  const float *gradients, *x;
  float *out;
} quant_job;

static inline float between(float x, float least, float most) {
  const float below = x > most ? most : x;
  return below < least ? least : below;
}

/* The ranges, in the workspace. ends: the tensors of the two ends, if they are tensors. */
static quant_ranges find_ranges(const quant_shape *s, const tf_tensor *const *ends, float *room) {
  const int64_t n = s->channels;
  const quant_ranges r = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n};
  const float first = s->narrow ? 1.0f : 0.0f, last = (float)(((int64_t)1 << s->bits) - 1);
  for (int64_t c = 0; c < n; c++) {
    const float low = s->tensors ? ((const float *)ends[0]->data)[c] : (float)s->low;
    const float high = s->tensors ? ((const float *)ends[1]->data)[c] : (float)s->high;
    if (low == 0 && high == 0) {
      r.lowest[c] = -INFINITY, r.highest[c] = INFINITY, r.scale[c] = 0;
      continue;
    }
    r.scale[c] = (high - low) / (last - first);
    const float moved = between(floorf(first - low / r.scale[c] + 0.5f), first, last);
    r.lowest[c] = (first - moved) * r.scale[c], r.highest[c] = (last - moved) * r.scale[c];
    r.inverse[c] = 1 / r.scale[c];
    r.zero[c] = floorf(-r.lowest[c] * r.inverse[c] + 0.5f);
  }
  return r;
}

static inline float rounded(const quant_ranges *r, int64_t c, float x) {
  if (r->scale[c] == 0 && r->highest[c] == INFINITY) return 0;
  const float steps = between(x, r->lowest[c], r->highest[c]) - r->lowest[c];
  return floorf(steps * r->inverse[c] - r->zero[c] + 0.5f) * r->scale[c];
}

/* Units: rows of all channels. */
static void round_rows(void *argument, int64_t begin, int64_t end) {
  const quant_job *job = argument;
  const quant_ranges r = job->ranges;
  const int64_t channels = job->shape->channels;
  for (int64_t row = begin; row < end; row++) {
    for (int64_t c = 0; c < channels; c++) job->out[row * channels + c] = rounded(&r, c, job->x[row * channels + c]);
  }
}

static void pass_gradients(void *argument, int64_t begin, int64_t end) {
  const quant_job *job = argument;
  const quant_ranges r = job->ranges;
  const int64_t channels = job->shape->channels;
  for (int64_t row = begin; row < end; row++) {
    for (int64_t c = 0; c < channels; c++) {
      const int64_t i = row * channels + c;
      job->out[i] = job->x[i] < r.lowest[c] || job->x[i] > r.highest[c] ? 0 : job->gradients[i];
    }
  }
}

/* The sums of the gradients of inputs below each channel's range, and of those above, in float64 and in order. */
static void add_outside(const quant_job *job, double *below, double *above) {
  const quant_ranges r = job->ranges;
  const int64_t channels = job->shape->channels;
  for (int64_t c = 0; c < channels; c++) below[c] = above[c] = 0;
  for (int64_t row = 0; row < job->shape->rows; row++) {
    for (int64_t c = 0; c < channels; c++) {
      const int64_t i = row * channels + c;
      below[c] += job->x[i] < r.lowest[c] ? job->gradients[i] : 0;
      above[c] += job->x[i] > r.highest[c] ? job->gradients[i] : 0;
    }
  }
}

static int32_t fake_quant(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                          const int64_t *parameters) {
  const quant_shape *s = (const quant_shape *)parameters;
  quant_job job = {s, find_ranges(s, inputs + 1, outputs[s->outputs]->data), NULL, inputs[0]->data, outputs[0]->data};
  context->parallel_for(context, s->rows, VALUES_A_UNIT / (s->channels + 1) + 1, round_rows, &job);
  return TF_OK;
}

static int32_t fake_quant_gradient(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                   const int64_t *parameters) {
  const quant_shape *s = (const quant_shape *)parameters;
  double *sums = outputs[s->outputs]->data;
  quant_job job = {s, find_ranges(s, inputs + 2, (float *)(sums + 2 * s->channels)), inputs[0]->data, inputs[1]->data,
                   outputs[0]->data};
  if (s->tensors) {
    add_outside(&job, sums, sums + s->channels);
    float *by_low = outputs[1]->data, *by_high = outputs[2]->data;
    for (int64_t c = 0; c < s->channels; c++) by_low[c] = (float)sums[c], by_high[c] = (float)sums[s->channels + c];
  }
  context->parallel_for(context, s->rows, VALUES_A_UNIT / (s->channels + 1) + 1, pass_gradients, &job);
  return TF_OK;
}

TF_TABLE(quantize) = {TF_ENTRY(fake_quant), TF_ENTRY(fake_quant_gradient), TF_END};
