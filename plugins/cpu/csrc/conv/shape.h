/* Parameters of the kernels of this family. */
#ifndef TIMBERFRAME_CPU_CONV_SHAPE_H
#define TIMBERFRAME_CPU_CONV_SHAPE_H

#include <stdint.h>

/* The parameters, in this order. Sizes are those of NHWC tensors whatever the layout; channels are counted per group.
 * The *_at are byte offsets in the workspace: of the input and output as NHWC tensors of the computing type (with NCHW
 * and 16-bit floats), the filter in that type, the packed filter and a row of zeros. */
typedef struct conv_shape {
  int64_t batch, height, width, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
  int64_t groups, in_channels, out_channels;
  int64_t channels_first;
  int64_t input_at, filter_at, output_at, packed_at, zeros_at;
} conv_shape;

#endif
