/* What follows a convolution in a layer: bias, batch normalisation by given statistics, activation. Kernels finish a
 * pixel's channels so while their sums are near, each step computed as its own kernel does: results have the same bits. */
#ifndef TIMBERFRAME_CPU_CONV_FINISH_H
#define TIMBERFRAME_CPU_CONV_FINISH_H

#include <math.h>
#include <string.h>

#include <timberframe/math/functions_float32.h>

#include "common/table.h"
#include "conv/shape.h"

enum { NO_ACTIVATION, RELU, RELU6, SWISH };

/* Numbers for each channel, those of a group padded to `padded`. bias, factors: NULL for none. Results lie from `lower`
 * to `upper`, or are multiplied by their sigmoid. */
typedef struct finish_float {
  const float *bias, *centers, *factors, *offsets;
  float lower, upper;
  int swish;
  int64_t padded;
} finish_float;

static inline float swish(float x) { return x * tf_sigmoid_f32(x); }

/* Not inlined: it is long, and tiles are many. */
static __attribute__((noinline)) void swish_values(float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = swish(values[i]);
}

/* Finishes sum[0 to ROWS - 1][v], registers with the channels from `at` on. Steps that are absent take no time. */
#define FINISH_SUMS_float(KIND, UNALIGNED_KIND, ROWS, finish, at, v)                                            \
  do {                                                                                                          \
    if ((finish)->bias) {                                                                                       \
      const KIND bias = (KIND)*(const UNALIGNED_KIND *)((finish)->bias + (at));                                 \
      UNROLL for (int r = 0; r < (ROWS); r++) sum[r][v] += bias;                                                \
    }                                                                                                           \
    if ((finish)->factors) {                                                                                    \
      const KIND center = (KIND)*(const UNALIGNED_KIND *)((finish)->centers + (at));                            \
      const KIND factor = (KIND)*(const UNALIGNED_KIND *)((finish)->factors + (at));                            \
      const KIND offset = (KIND)*(const UNALIGNED_KIND *)((finish)->offsets + (at));                            \
      UNROLL for (int r = 0; r < (ROWS); r++) sum[r][v] = (sum[r][v] - center) * factor + offset;               \
    }                                                                                                           \
    if ((finish)->lower > -INFINITY) {                                                                          \
      const KIND lower = (KIND){0} + (finish)->lower;                                                           \
      UNROLL for (int r = 0; r < (ROWS); r++) sum[r][v] = SELECTED(KIND, sum[r][v] <= lower, lower, sum[r][v]); \
    }                                                                                                           \
    if ((finish)->upper < INFINITY) {                                                                           \
      const KIND upper = (KIND){0} + (finish)->upper;                                                           \
      UNROLL for (int r = 0; r < (ROWS); r++) sum[r][v] = SELECTED(KIND, sum[r][v] > upper, upper, sum[r][v]);  \
    }                                                                                                           \
  } while (0)
#define SELECTED(KIND, mask, a, b) (KIND)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b)))

/* What is done to all sums of a tile, sum[0 to ROWS - 1][0 to VECTORS - 1], after that. */
#define FINISH_TILE_float(KIND, UNALIGNED_KIND, ROWS, VECTORS, finish)                            \
  do {                                                                                            \
    if ((finish)->swish) {                                                                        \
      float values[(ROWS) * (VECTORS) * sizeof(KIND) / sizeof(float)];                            \
      UNALIGNED_KIND *places = (UNALIGNED_KIND *)values;                                          \
      UNROLL for (int r = 0; r < (ROWS); r++) {                                                   \
        UNROLL for (int v = 0; v < (VECTORS); v++) places[r * (VECTORS) + v] = sum[r][v];         \
      }                                                                                           \
      swish_values(values, (int64_t)(sizeof values / sizeof *values));                            \
      UNROLL for (int r = 0; r < (ROWS); r++) {                                                   \
        UNROLL for (int v = 0; v < (VECTORS); v++) sum[r][v] = (KIND)places[r * (VECTORS) + v];   \
      }                                                                                           \
    }                                                                                             \
  } while (0)

/* The same for the channels from `first` to `last` of one pixel, one by one. */
static inline void finish_channels_float(const finish_float *finish, int64_t first, int64_t last, float *out) {
  for (int64_t c = first; c < last; c++) {
    float x = out[c];
    if (finish->bias) x += finish->bias[c];
    if (finish->factors) x = (x - finish->centers[c]) * finish->factors[c] + finish->offsets[c];
    x = x <= finish->lower ? finish->lower : x;
    x = x > finish->upper ? finish->upper : x;
    out[c] = finish->swish ? swish(x) : x;
  }
}

/* Only float32 is finished; images of other types have no numbers for it. */
#define FINISH_SUMS_double(KIND, UNALIGNED_KIND, ROWS, finish, at, v) (void)(at)
#define FINISH_SUMS_int32(KIND, UNALIGNED_KIND, ROWS, finish, at, v) (void)(at)
#define FINISH_TILE_double(KIND, UNALIGNED_KIND, ROWS, VECTORS, finish)
#define FINISH_TILE_int32(KIND, UNALIGNED_KIND, ROWS, VECTORS, finish)
#define finish_channels_double(finish, first, last, out) (void)(finish)

/* The parameters of kernels for float32 images with channels last, in this order. The workspace follows `outputs`
 * outputs; at finish_at it has room for four numbers for each channel, those of a group padded to `padded`. bias, norm:
 * positions of the first of their inputs, 0 for none. packed: whether the filter is packed already. */
typedef struct finished_shape {
  conv_shape conv;
  int64_t finish_at, packed, bias, norm, activation, outputs, padded;
  double epsilon;
} finished_shape;

/* A value of each channel so that those of each group begin where a register does: in `to` where they must be moved. */
static inline const float *spread_channels(const finished_shape *s, const float *from, float *to) {
  if (s->padded == s->conv.out_channels) return from;
  for (int64_t group = 0; group < s->conv.groups; group++) {
    float *row = to + group * s->padded;
    memcpy(row, from + group * s->conv.out_channels, (size_t)s->conv.out_channels * sizeof(float));
    memset(row + s->conv.out_channels, 0, (size_t)(s->padded - s->conv.out_channels) * sizeof(float));
  }
  return to;
}

/* How a node's channels are finished. A normalisation whose own outputs the node has passes its statistics on. */
static inline finish_float find_finish(const finished_shape *s, const tf_tensor *const *inputs,
                                       tf_tensor *const *outputs) {
  int64_t channels = s->conv.groups * s->conv.out_channels, row = s->conv.groups * s->padded;
  float *room = (float *)((char *)outputs[s->outputs]->data + s->finish_at), *factors = room + row;
  finish_float finish = {.lower = -INFINITY, .upper = INFINITY, .padded = s->padded};
  if (s->activation == RELU || s->activation == RELU6) finish.lower = 0;
  if (s->activation == RELU6) finish.upper = 6;
  finish.swish = s->activation == SWISH;
  if (s->bias) finish.bias = spread_channels(s, inputs[s->bias]->data, room);
  if (!s->norm) return finish;
  const float *scale = inputs[s->norm]->data, *mean = inputs[s->norm + 2]->data, *variance = inputs[s->norm + 3]->data;
  for (int64_t i = 1; i < s->outputs && i < 5; i++) {
    memcpy(outputs[i]->data, i % 2 ? mean : variance, (size_t)channels * sizeof(float));
  }
  float *scales = factors + row; /* until the offsets take the place */
  for (int64_t c = 0; c < channels; c++) scales[c] = (float)(scale[c] / sqrt(variance[c] + s->epsilon));
  finish.factors = spread_channels(s, scales, factors);
  finish.offsets = spread_channels(s, inputs[s->norm + 1]->data, factors + row);
  finish.centers = spread_channels(s, mean, factors + 2 * row);
  return finish;
}

#endif
