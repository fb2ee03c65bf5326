/* DepthwiseConv2dNative and its gradient by the input: each channel with filters of its own, vectorised across
 * channels.
 *
 * Several neighbouring pixels are computed together, so that they share what is read of the filter. Pointers lead to
 * each pixel's channels under each tap, or to zeros outside the image. */
#include <string.h>

#include "common/table.h"
#include "conv/entry.h"
#include "conv/finish.h"
#include "conv/phases.h"
#include "conv/shape.h"
#include "conv/taps.h"
#include "conv/vector.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define PIXELS 4
#define MAXIMUM_TAPS 64    /* taps whose pointers are held at a time */
#define MOST_TAP_ROWS 16   /* rows of taps of the tiles that share columns */
#define SERIAL_TERMS 16384 /* products worth a thread */

#define T float
#define NAME float
#include "conv/depthwise.inc"
#define T double
#define NAME double
#include "conv/depthwise.inc"

FORWARD(depthwise, run, float, float, float)
FORWARD(depthwise, run, double, double, double)
FORWARD(depthwise, run, float16, float, float)
FORWARD(depthwise, run, bfloat16, float, float)
BACKWARD(depthwise_input, run_input, float, float, float)
BACKWARD(depthwise_input, run_input, double, double, double)
BACKWARD(depthwise_input, run_input, float16, float, float)
BACKWARD(depthwise_input, run_input, bfloat16, float, float)

/* depthwise with what follows it. */
static int32_t depthwise_finished_float(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                        const int64_t *parameters) {
  const finished_shape *s = (const finished_shape *)parameters;
  const finish_float finish = find_finish(s, inputs, outputs);
  run_finished_float(context, &s->conv, inputs[0]->data, inputs[1]->data, outputs[0]->data,
                     outputs[s->outputs]->data, &finish);
  return TF_OK;
}

TF_TABLE(conv_depthwise) = {
  TF_ENTRY(depthwise_finished_float),
  TF_ENTRY(depthwise_float), TF_ENTRY(depthwise_double), TF_ENTRY(depthwise_float16), TF_ENTRY(depthwise_bfloat16),
  TF_ENTRY(depthwise_input_float), TF_ENTRY(depthwise_input_double), TF_ENTRY(depthwise_input_float16),
  TF_ENTRY(depthwise_input_bfloat16), TF_END,
};
