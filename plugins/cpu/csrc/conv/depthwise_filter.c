/* DepthwiseConv2dNativeBackpropFilter. Each element adds up its pixels by rows of fixed parts of the batch, then the
 * parts, so that the result does not depend on the number of threads. */
#include <string.h>

#include "common/table.h"
#include "conv/padded.h"
#include "conv/vector.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_TAPS 63 /* taps whose offsets are held at a time; a multiple of the taps that share a register of dy */

#define T float
#define NAME float
#include "conv/depthwise_filter.inc"
#define T double
#define NAME double
#include "conv/depthwise_filter.inc"

FILTER_KERNEL(depthwise_filter, run_filter, float, float, float)
FILTER_KERNEL(depthwise_filter, run_filter, double, double, double)
FILTER_KERNEL(depthwise_filter, run_filter, float16, float, float)
FILTER_KERNEL(depthwise_filter, run_filter, bfloat16, float, float)

TF_TABLE(conv_depthwise_filter) = {TF_ENTRY(depthwise_filter_float), TF_ENTRY(depthwise_filter_double),
                                   TF_ENTRY(depthwise_filter_float16), TF_ENTRY(depthwise_filter_bfloat16), TF_END};
