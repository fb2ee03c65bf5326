/* A convolution of float32 images with channels last and what follows it in a layer: bias, batch normalisation by given
 * statistics, activation. Each is computed as its own kernel does, so that results have the same bits. After
 * conv/implicit.inc, which finishes a tile while its sums are near. */
#ifndef TIMBERFRAME_CPU_CONV_FINISH_H
#define TIMBERFRAME_CPU_CONV_FINISH_H

#include <math.h>

#include "common/table.h"
#include "conv/shape.h"

/* The parameters of conv2d_finished, in this order. The workspace follows `outputs` outputs; at finish_at it has room for
 * four numbers for each channel, those of a group padded to `padded`. bias, norm: positions of the first of their
 * inputs, 0 for none. packed: whether the filter is packed already. */
typedef struct finished_shape {
  conv_shape conv;
  int64_t finish_at, packed, bias, norm, activation, outputs, padded;
  double epsilon;
} finished_shape;

/* Spreads a value of each channel so that those of each group begin where a register does. */
static const float *spread_channels(const finished_shape *s, const float *from, float *to) {
  for (int64_t group = 0; group < s->conv.groups; group++) {
    float *row = to + group * s->padded;
    memcpy(row, from + group * s->conv.out_channels, (size_t)s->conv.out_channels * sizeof(float));
    memset(row + s->conv.out_channels, 0, (size_t)(s->padded - s->conv.out_channels) * sizeof(float));
  }
  return to;
}

/* How a node's channels are finished. A normalisation whose own outputs the node has passes its statistics on. */
static finish_float find_finish(const finished_shape *s, const tf_tensor *const *inputs, tf_tensor *const *outputs) {
  int64_t channels = s->conv.groups * s->conv.out_channels, row = s->conv.groups * s->padded;
  float *room = (float *)((char *)outputs[s->outputs]->data + s->finish_at), *factors = room + row;
  finish_float finish = {.activation = s->activation, .padded = s->padded};
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

static int32_t conv2d_finished_float(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                     const int64_t *parameters) {
  const finished_shape *s = (const finished_shape *)parameters;
  const finish_float finish = find_finish(s, inputs, outputs);
  const float *filter = inputs[1]->data;
  run_finished_float(context, &s->conv, inputs[0]->data, s->packed ? NULL : filter, s->packed ? filter : NULL,
                     outputs[0]->data, outputs[s->outputs]->data, &finish);
  return TF_OK;
}

#endif
