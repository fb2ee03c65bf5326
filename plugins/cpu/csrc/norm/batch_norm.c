/* FusedBatchNorm: x seen as [outer, channels, inner], inner being 1 where channels come last.
 *
 * Mean and variance take two passes and add up in float64: of blocks of rows whose number does not depend on the
 * threads, then of the blocks. */
#include <math.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_BLOCKS 64
#define BLOCK_VALUES 16384 /* least values in a block */
#define SUMS 8             /* partial sums of a contiguous run */

/* The parameters, in this order. The workspace holds float64 sums [MAXIMUM_BLOCKS, channels], float64 means [channels],
 * then float32 centres, factors and offsets. */
typedef struct norm_shape {
  int64_t outer, channels, inner, training;
  double epsilon, blend;
  int64_t workspace; /* its index among the outputs */
} norm_shape;

typedef struct norm_job {
  const norm_shape *shape;
  const void *x;
  void *y;
  int64_t blocks, rows; /* rows of a block, channels last */
  double *sums, *means;
  float *centers, *factors, *offsets;
  int squares; /* the pass adds up squared deviations */
} norm_job;

#define NORM(NAME, S, LOAD, STORE)                                                                                    \
  /* Channels last: blocks of rows. */                                                                                \
  static void sum_blocks_##NAME(void *argument, int64_t begin, int64_t end) {                                         \
    const norm_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels;                                                                          \
    for (int64_t block = begin; block < end; block++) {                                                               \
      double *restrict sums = job->sums + block * channels;                                                           \
      memset(sums, 0, (size_t)channels * sizeof *sums);                                                               \
      int64_t last = MINIMUM((block + 1) * job->rows, job->shape->outer);                                             \
      for (int64_t row = block * job->rows; row < last; row++) {                                                      \
        const S *x = (const S *)job->x + row * channels;                                                              \
        const double *means = job->means;                                                                             \
        if (job->squares) {                                                                                           \
          for (int64_t c = 0; c < channels; c++) {                                                                    \
            double d = LOAD(x[c]) - means[c];                                                                         \
            sums[c] += d * d;                                                                                         \
          }                                                                                                           \
        } else {                                                                                                      \
          for (int64_t c = 0; c < channels; c++) sums[c] += LOAD(x[c]);                                               \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  /* Channels first: whole channels. */                                                                               \
  static void sum_channels_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const norm_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels, inner = job->shape->inner;                                               \
    for (int64_t c = begin; c < end; c++) {                                                                           \
      double sums[SUMS] = {0}, center = job->squares ? job->means[c] : 0;                                             \
      for (int64_t n = 0; n < job->shape->outer; n++) {                                                               \
        const S *x = (const S *)job->x + (n * channels + c) * inner;                                                  \
        int64_t i = 0;                                                                                                \
        for (; i + SUMS <= inner; i += SUMS) {                                                                        \
          for (int k = 0; k < SUMS; k++) {                                                                            \
            double d = LOAD(x[i + k]) - center;                                                                       \
            sums[k] += job->squares ? d * d : d;                                                                      \
          }                                                                                                           \
        }                                                                                                             \
        for (; i < inner; i++) {                                                                                      \
          double d = LOAD(x[i]) - center;                                                                             \
          sums[0] += job->squares ? d * d : d;                                                                        \
        }                                                                                                             \
      }                                                                                                               \
      job->sums[c] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));       \
    }                                                                                                                 \
  }                                                                                                                   \
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
    static const norm_passes passes = {sum_blocks_##NAME, sum_channels_##NAME, scale_##NAME};                         \
    return batch_norm(context, inputs, outputs, (const norm_shape *)parameters, &passes);                             \
  }

typedef struct norm_passes {
  tf_range *sum_blocks, *sum_channels, *scale;
} norm_passes;

/* Fills `results` with each channel's sum over the batch, divided by the number of values. */
static void reduce(tf_context *context, norm_job *job, const norm_passes *passes, double *results) {
  const norm_shape *s = job->shape;
  double count = (double)(s->outer * s->inner);
  if (s->inner == 1) {
    context->parallel_for(context, job->blocks, 1, passes->sum_blocks, job);
  } else {
    int64_t each = s->outer * s->inner;
    context->parallel_for(context, s->channels, 1 + BLOCK_VALUES / each, passes->sum_channels, job);
  }
  for (int64_t c = 0; c < s->channels; c++) {
    double sum = job->sums[c];
    for (int64_t b = 1; b < job->blocks; b++) sum += job->sums[b * s->channels + c];
    results[c] = sum / count;
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
  double *sums = outputs[s->workspace]->data, *means = sums + MAXIMUM_BLOCKS * s->channels;
  float *centers = (float *)(means + s->channels), *factors = centers + s->channels, *offsets = factors + s->channels;
  int64_t least = BLOCK_VALUES / s->channels + 1, rows = (s->outer + MAXIMUM_BLOCKS - 1) / MAXIMUM_BLOCKS;
  if (rows < least) rows = least;
  int64_t blocks = s->inner == 1 ? (s->outer + rows - 1) / rows : 1;
  norm_job job = {s, inputs[0]->data, outputs[0]->data, blocks, rows, sums, means, centers, factors, offsets, 0};
  if (s->training) {
    reduce(context, &job, passes, means);
    job.squares = 1;
    reduce(context, &job, passes, sums); /* element c is read before it is written */
  }
  double count = (double)(s->outer * s->inner), unbiased = s->training ? count / (count > 1 ? count - 1 : 1) : 1;
  for (int64_t c = 0; c < s->channels; c++) {
    double center = s->training ? means[c] : mean[c], spread = s->training ? sums[c] : variance[c];
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
