/* FusedBatchNorm: x seen as [outer, channels, inner], inner being 1 where channels come last.
 *
 * Mean and variance take one pass: the sums of deviations from the channel's first value, and of their squares. That costs
 * few of float64's digits wherever the mean is, as the first value's deviation is part of the variance. */
#include <math.h>
#include "common/half.h"
#include "common/table.h"
#include "norm/sums.h"

/* The parameters, in this order. The workspace holds float64 sums [MAXIMUM_BLOCKS, 2, channels], float64 first
 * values [channels], then float32 centres, factors and offsets. */
typedef struct norm_shape {
  int64_t outer, channels, inner, training;
  double epsilon, blend;
  int64_t workspace; /* its index among the outputs */
} norm_shape;

typedef struct norm_job {
  const norm_shape *shape;
  const void *x;
  void *y;
  float *centers, *factors, *offsets;
} norm_job;

#define NORM(NAME, S, LOAD, STORE)                                                                                    \
  CHANNEL_SUMS(NAME, S, LOAD, 0)                                                                                      \
  static double first_##NAME(const void *x, int64_t at) { return LOAD(((const S *)x)[at]); }                          \
  static void scale_##NAME(void *argument, int64_t begin, int64_t end) {                                              \
    const norm_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels, inner = job->shape->inner, width = inner == 1 ? channels : inner;        \
    const float *restrict centers = job->centers, *restrict factors = job->factors, *restrict offsets = job->offsets; \
    for (int64_t row = begin; row < end; row++) {                                                                     \
      const S *restrict x = (const S *)job->x + row * width;                                                          \
      S *restrict y = (S *)job->y + row * width;                                                                      \
      if (inner == 1) {                                                                                               \
        for (int64_t c = 0; c < width; c++) y[c] = STORE((LOAD(x[c]) - centers[c]) * factors[c] + offsets[c]);        \
      } else {                                                                                                        \
        float center = centers[row % channels], factor = factors[row % channels], offset = offsets[row % channels];   \
        for (int64_t i = 0; i < width; i++) y[i] = STORE((LOAD(x[i]) - center) * factor + offset);                    \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t batch_norm_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                   const int64_t *parameters) {                                                       \
    static const norm_passes passes = {first_##NAME, sum_blocks_##NAME, sum_channels_##NAME, scale_##NAME};           \
    return batch_norm(context, inputs, outputs, (const norm_shape *)parameters, &passes);                             \
  }

typedef struct norm_passes {
  double (*first)(const void *x, int64_t at);
  tf_range *sum_blocks, *sum_channels, *scale;
} norm_passes;

/* Makes the sums: the means of the channels, then their variances. */
static void find_moments(tf_context *context, const norm_shape *s, const void *x, double *sums, double *centers,
                         const norm_passes *passes) {
  channel_sums job = {s->outer, s->channels, s->inner, x, x, centers, sums, 0, 0};
  double count = (double)(s->outer * s->inner);
  for (int64_t c = 0; c < s->channels; c++) {
    double first = passes->first(x, c * s->inner);
    centers[c] = isfinite(first) ? first : 0;
  }
  add_up(context, &job, passes->sum_blocks, passes->sum_channels);
  for (int64_t c = 0; c < s->channels; c++) {
    double sum = sums[c], variance = (sums[s->channels + c] - sum * (sum / count)) / count;
    sums[c] = centers[c] + sum / count;
    sums[s->channels + c] = variance < 0 ? 0 : variance;
  }
}

/* No values: the running statistics are NaN, the reserved ones zero, whatever else was asked. */
static void fill_empty(const norm_shape *s, tf_tensor *const *outputs) {
  for (int i = 1; i < 5; i++) {
    float *out = outputs[i]->data;
    for (int64_t c = 0; c < s->channels; c++) out[c] = i < 3 ? NAN : 0.0f;
  }
}

static int32_t batch_norm(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                          const norm_shape *s, const norm_passes *passes) {
  if (!outputs[0]->size) return fill_empty(s, outputs), TF_OK;
  const float *scale = inputs[1]->data, *offset = inputs[2]->data, *mean = inputs[3]->data, *variance = inputs[4]->data;
  float *running_mean = outputs[1]->data, *running_variance = outputs[2]->data;
  float *saved_mean = outputs[3]->data, *saved_variance = outputs[4]->data;
  double *means = outputs[s->workspace]->data, *variances = means + s->channels;
  double *firsts = means + 2 * MAXIMUM_BLOCKS * s->channels;
  float *centers = (float *)(firsts + s->channels), *factors = centers + s->channels, *offsets = factors + s->channels;
  if (s->training) find_moments(context, s, inputs[0]->data, means, firsts, passes);
  double count = (double)(s->outer * s->inner), unbiased = s->training ? count / (count > 1 ? count - 1 : 1) : 1;
  for (int64_t c = 0; c < s->channels; c++) {
    double center = s->training ? means[c] : mean[c], spread = s->training ? variances[c] : variance[c];
    double old_mean = 0, old_variance = 0, blend = s->training ? s->blend : 1;
    if (blend != 1) old_mean = mean[c], old_variance = variance[c];
    running_mean[c] = (float)((1 - blend) * old_mean + blend * center);
    running_variance[c] = (float)((1 - blend) * old_variance + blend * spread * unbiased);
    saved_mean[c] = (float)center;
    saved_variance[c] = (float)spread;
    centers[c] = (float)center;
    factors[c] = (float)(scale[c] / sqrt(spread + s->epsilon));
    offsets[c] = offset[c];
  }
  norm_job job = {s, inputs[0]->data, outputs[0]->data, centers, factors, offsets};
  int64_t width = s->inner == 1 ? s->channels : s->inner;
  context->parallel_for(context, outputs[0]->size / width, 1 + BLOCK_VALUES / width, passes->scale, &job);
  return TF_OK;
}

#define SAME(x) (x)
NORM(float32, float, SAME, SAME)
NORM(float16, tf_float16, tf_float32_from_float16, tf_float16_from_float32)
NORM(bfloat16, tf_bfloat16, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

TF_TABLE(norm_batch) = {
  TF_ENTRY(batch_norm_float32), TF_ENTRY(batch_norm_float16), TF_ENTRY(batch_norm_bfloat16), TF_END,
};
