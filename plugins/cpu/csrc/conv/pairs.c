/* Convolutions whose products are computed of bfloat16 numbers, two at a time, and summed in float32.
 *
 * A pair is two neighbouring channels of a pixel, or the filter's numbers for two neighbouring input channels, in the
 * 32 bits of a float, the first one in the lower half. A convolution of pairs is one of half the input channels, so
 * conv/implicit.inc computes it as it does one of float32, but for the multiplication. Numbers that are too small for a
 * normal bfloat16 count as zeros, and so do such sums: the instruction does that. */
#include <string.h>

#include <immintrin.h>

#include "common/half.h"
#include "common/table.h"
#include "conv/finish.h"
#include "conv/layout.h"
#include "conv/shape.h"
#include "conv/taps.h"
#include "conv/tiling.h"
#include "conv/vector.h"

typedef vector_float vector_pair;
typedef unaligned_float unaligned_pair;

/* The products of both numbers of each pair are added to c. */
static inline vector_float multiply_add_pair(vector_float a, vector_float b, vector_float c) {
  return (vector_float)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
}

#define FINISH_SUMS_pair FINISH_SUMS_float
#define FINISH_TILE_pair FINISH_TILE_float

static inline float low_half(float pair) {
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  bits <<= 16;
  memcpy(&pair, &bits, sizeof(bits));
  return pair;
}

/* 0 where both numbers of all pairs are finite, else NaN. As a float, a pair is finite if its upper half is. */
static float spoilt_pair(const float *pairs, int64_t count) {
  float sum = spoilt_float(pairs, count);
  for (int64_t i = 0; i < count; i++) sum += low_half(pairs[i]) * 0;
  return sum;
}

#if defined(TF_ISA_AMX)
#include "conv/matrix_tiles.inc"
#endif

#define T float
#define NAME pair
#include "conv/implicit.inc"
#include "conv/forward.inc"

typedef struct narrowing_job {
  const float *from;
  tf_bfloat16 *to;
  int64_t count;
} narrowing_job;

/* Numbers that are narrowed at a time. */
enum { NARROWED = 32 };

/* Units: NARROWED numbers each, of which the last may have fewer. */
static void narrow_numbers(void *argument, int64_t begin, int64_t end) {
  const narrowing_job *job = argument;
  for (int64_t unit = begin; unit < end; unit++) {
    const float *from = job->from + unit * NARROWED;
    tf_bfloat16 *to = job->to + unit * NARROWED;
    const int64_t left = job->count - unit * NARROWED;
    if (left >= NARROWED) {
      _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + NARROWED / 2), _mm512_loadu_ps(from)));
    } else {
      tf_bfloat16_from_float32_n(to, from, left);
    }
  }
}

/* The image as pairs: the channels of each pixel being even in number, it is the image of bfloat16 as it lies. */
static const float *image_pairs_bfloat16(tf_context *context, const void *image, void *room, const conv_shape *s) {
  (void)context, (void)room, (void)s;
  return image;
}

static const float *image_pairs_float(tf_context *context, const void *image, void *room, const conv_shape *s) {
  narrowing_job job = {image, room, s->batch * s->height * s->width * s->groups * s->in_channels};
  context->parallel_for(context, (job.count + NARROWED - 1) / NARROWED, 512, narrow_numbers, &job);
  return room;
}

#define SAME(x) (x)

/* filter_pairs_<type>: of two neighbouring input channels the rows of the filter become one row of pairs.
 *
 * conv2d_pack_pairs_<type> packs a filter so, conv2d_packed_pairs_<type> convolves with it. */
#define PAIRED(NAME, S, ROUND)                                                                                      \
  static void filter_pairs_##NAME(const conv_shape *s, const S *filter, tf_bfloat16 *to) {                          \
    const int64_t row = s->groups * s->out_channels, rows = s->kernel_height * s->kernel_width * s->in_channels / 2; \
    for (int64_t r = 0; r < rows; r++, filter += 2 * row) {                                                         \
      for (int64_t c = 0; c < row; c++) {                                                                           \
        *to++ = ROUND(filter[c]);                                                                                   \
        *to++ = ROUND(filter[row + c]);                                                                             \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static int32_t conv2d_pack_pairs_##NAME(tf_context *context, const tf_tensor *const *inputs,                      \
                                          tf_tensor *const *outputs, const int64_t *parameters) {                   \
    const conv_shape *s = (const conv_shape *)parameters, paired = of_pairs(s);                                     \
    filter_pairs_##NAME(s, inputs[0]->data, outputs[1]->data);                                                      \
    pack_filter_pair(context, &paired, outputs[1]->data, outputs[0]->data);                                         \
    return TF_OK;                                                                                                   \
  }                                                                                                                 \
  static int32_t conv2d_packed_pairs_##NAME(tf_context *context, const tf_tensor *const *inputs,                    \
                                            tf_tensor *const *outputs, const int64_t *parameters) {                 \
    const conv_shape *s = (const conv_shape *)parameters, paired = of_pairs(s);                                     \
    if (!outputs[0]->size) return TF_OK;                                                                            \
    const image_shape to = output_images(s);                                                                        \
    char *workspace = outputs[1]->data;                                                                             \
    const float *images = image_pairs_##NAME(context, inputs[0]->data, workspace + s->input_at, s);                 \
    float *results = destination_##NAME(outputs[0]->data, workspace + s->output_at, &to);                           \
    run_forward_pair(context, &paired, images, NULL, inputs[1]->data, results, workspace);                          \
    give_##NAME(context, results, outputs[0]->data, &to);                                                           \
    return TF_OK;                                                                                                   \
  }

/* The convolution of pairs. */
static conv_shape of_pairs(const conv_shape *s) {
  conv_shape paired = *s;
  paired.in_channels /= 2;
  return paired;
}

PAIRED(float, float, tf_bfloat16_from_float32)
PAIRED(bfloat16, tf_bfloat16, SAME)

/* conv2d_finished_float with a filter that conv2d_pack_pairs_float has packed. */
static int32_t conv2d_finished_pairs_float(tf_context *context, const tf_tensor *const *inputs,
                                           tf_tensor *const *outputs, const int64_t *parameters) {
  const finished_shape *s = (const finished_shape *)parameters;
  const conv_shape paired = of_pairs(&s->conv);
  const finish_float finish = find_finish(s, inputs, outputs);
  char *workspace = outputs[s->outputs]->data;
  const float *images = image_pairs_float(context, inputs[0]->data, workspace + s->conv.input_at, &s->conv);
  run_finished_pair(context, &paired, images, NULL, inputs[1]->data, outputs[0]->data, workspace, &finish);
  return TF_OK;
}

TF_TABLE(conv_pairs) = {
  TF_ENTRY(conv2d_finished_pairs_float), TF_ENTRY(conv2d_pack_pairs_float), TF_ENTRY(conv2d_pack_pairs_bfloat16),
  TF_ENTRY(conv2d_packed_pairs_float), TF_ENTRY(conv2d_packed_pairs_bfloat16), TF_END,
};
