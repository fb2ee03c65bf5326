/* Conv2D and its gradient by the input: an implicit matrix product of pixels [batch * height * width, taps *
 * channels] and the filter.
 *
 * No matrix of patches is built: a register tile of pixels by output channels reads the image through pointers, one
 * for each pixel and tap, that lead to a row of zeros where the window hangs over the edge. Each output element adds
 * up its terms in the filter's order, so results depend neither on the tiling nor on the number of threads. Terms of
 * taps that hang over the edge are zeros where the filter is finite, and then a tile leaves them out if it can. */
#include <string.h>

#include "common/table.h"
#include "conv/entry.h"
#include "conv/finish.h"
#include "conv/phases.h"
#include "conv/shape.h"
#include "conv/taps.h"
#include "conv/tiling.h"
#include "conv/vector.h"
#include "conv/volume_entry.h"

#define T float
#define NAME float
#include "conv/implicit.inc"
#include "conv/forward.inc"
#include "conv/transposed.inc"
#define T double
#define NAME double
#include "conv/implicit.inc"
#include "conv/forward.inc"
#include "conv/transposed.inc"
#define T uint32_t
#define NAME int32
#include "conv/implicit.inc"
#include "conv/forward.inc"
#include "conv/transposed.inc"

FORWARD(conv2d, run, float, float, float)
FORWARD(conv2d, run, double, double, double)
FORWARD(conv2d, run, int32, uint32_t, int32)
FORWARD(conv2d, run, float16, float, float)
FORWARD(conv2d, run, bfloat16, float, float)
PACKED_FORWARD(float, float, float)
PACKED_BACKWARD(float, float, float)
PACKED_FORWARD(double, double, double)
PACKED_BACKWARD(double, double, double)
PACKED_FORWARD(int32, uint32_t, int32)
PACKED_BACKWARD(int32, uint32_t, int32)
PACKED_FORWARD(float16, float, float)
PACKED_BACKWARD(float16, float, float)
PACKED_FORWARD(bfloat16, float, float)
PACKED_BACKWARD(bfloat16, float, float)
BACKWARD(conv2d_input, run_input, float, float, float)
BACKWARD(conv2d_input, run_input, double, double, double)
BACKWARD(conv2d_input, run_input, int32, uint32_t, int32)
BACKWARD(conv2d_input, run_input, float16, float, float)
BACKWARD(conv2d_input, run_input, bfloat16, float, float)
VOLUME_FORWARD(float, float, float)
VOLUME_FORWARD(double, double, double)
VOLUME_FORWARD(float16, float, float)
VOLUME_FORWARD(bfloat16, float, float)
VOLUME_PACKED(float, float, float)
VOLUME_PACKED(double, double, double)
VOLUME_PACKED(float16, float, float)
VOLUME_PACKED(bfloat16, float, float)
VOLUME_INPUT(float, float, float)
VOLUME_INPUT(double, double, double)
VOLUME_INPUT(float16, float, float)
VOLUME_INPUT(bfloat16, float, float)

/* conv2d with what follows it. */
static int32_t conv2d_finished_float(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                     const int64_t *parameters) {
  const finished_shape *s = (const finished_shape *)parameters;
  const finish_float finish = find_finish(s, inputs, outputs);
  const float *filter = inputs[1]->data;
  run_finished_float(context, &s->conv, inputs[0]->data, s->packed ? NULL : filter, s->packed ? filter : NULL,
                     outputs[0]->data, outputs[s->outputs]->data, &finish);
  return TF_OK;
}

/* What Python must know of packed filters: the bytes of a register, and the registers of a panel. */
static int32_t conv2d_panel(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                            const int64_t *parameters) {
  (void)context, (void)inputs, (void)parameters;
  int64_t *sizes = outputs[0]->data;
  sizes[0] = TF_VECTOR_BYTES, sizes[1] = PANEL_VECTORS;
  return TF_OK;
}

TF_TABLE(conv_conv2d) = {
  TF_ENTRY(conv2d_panel), TF_ENTRY(conv2d_finished_float), TF_ENTRY(conv2d_float), TF_ENTRY(conv2d_double), TF_ENTRY(conv2d_int32), TF_ENTRY(conv2d_float16),
  TF_ENTRY(conv2d_bfloat16), TF_ENTRY(conv2d_input_pack_float), TF_ENTRY(conv2d_input_pack_double),
  TF_ENTRY(conv2d_input_pack_int32), TF_ENTRY(conv2d_input_pack_float16), TF_ENTRY(conv2d_input_pack_bfloat16),
  TF_ENTRY(conv2d_input_packed_float), TF_ENTRY(conv2d_input_packed_double), TF_ENTRY(conv2d_input_packed_int32),
  TF_ENTRY(conv2d_input_packed_float16), TF_ENTRY(conv2d_input_packed_bfloat16), TF_ENTRY(conv2d_pack_float), TF_ENTRY(conv2d_pack_double), TF_ENTRY(conv2d_pack_int32),
  TF_ENTRY(conv2d_pack_float16), TF_ENTRY(conv2d_pack_bfloat16), TF_ENTRY(conv2d_packed_float),
  TF_ENTRY(conv2d_packed_double), TF_ENTRY(conv2d_packed_int32), TF_ENTRY(conv2d_packed_float16),
  TF_ENTRY(conv2d_packed_bfloat16), TF_ENTRY(conv2d_input_float), TF_ENTRY(conv2d_input_double), TF_ENTRY(conv2d_input_int32),
  TF_ENTRY(conv2d_input_float16), TF_ENTRY(conv2d_input_bfloat16),
  TF_ENTRY(conv3d_packed_float), TF_ENTRY(conv3d_packed_double), TF_ENTRY(conv3d_packed_float16),
  TF_ENTRY(conv3d_packed_bfloat16), TF_ENTRY(conv3d_float), TF_ENTRY(conv3d_double), TF_ENTRY(conv3d_float16), TF_ENTRY(conv3d_bfloat16),
  TF_ENTRY(conv3d_input_float), TF_ENTRY(conv3d_input_double), TF_ENTRY(conv3d_input_float16),
  TF_ENTRY(conv3d_input_bfloat16), TF_END,
};
