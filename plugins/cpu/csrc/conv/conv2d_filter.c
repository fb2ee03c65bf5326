/* Conv2DBackpropFilter. Each element of the gradient adds up its pixels in the same order whatever the number of
 * threads: of fixed parts of the pixels, then of the parts. */
#include <string.h>

#include "common/table.h"
#include "conv/padded.h"
#include "conv/taps.h"
#include "conv/vector.h"
#include "conv/volume_entry.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK_PIXELS 96    /* pixels of a block: their part of a panel stays in the first-level cache */
#define PIECE_ROWS 48      /* rows of the gradient that make a unit of work; a multiple of every tile's */

#define AHEAD 64          /* bytes of a patch that are fetched ahead */
#define SERIAL_TERMS 32768 /* products worth a thread */

/* Pixels of out_backprop: those at some neighbouring places of some images. */
typedef struct pixel_block {
  int64_t first_image, images, first_place, places;
} pixel_block;

#define T float
#define NAME float
#include "conv/correlate.inc"
#define T double
#define NAME double
#include "conv/correlate.inc"

FILTER_KERNEL(conv2d_filter, run_filter, float, float, float)
FILTER_KERNEL(conv2d_filter, run_filter, double, double, double)
FILTER_KERNEL(conv2d_filter, run_filter, float16, float, float)
FILTER_KERNEL(conv2d_filter, run_filter, bfloat16, float, float)
VOLUME_FILTER(float, float, float)
VOLUME_FILTER(double, double, double)
VOLUME_FILTER(float16, float, float)
VOLUME_FILTER(bfloat16, float, float)

TF_TABLE(conv_filter) = {
  TF_ENTRY(conv2d_filter_float), TF_ENTRY(conv2d_filter_double), TF_ENTRY(conv2d_filter_float16),
  TF_ENTRY(conv2d_filter_bfloat16), TF_ENTRY(conv3d_filter_float), TF_ENTRY(conv3d_filter_double),
  TF_ENTRY(conv3d_filter_float16), TF_ENTRY(conv3d_filter_bfloat16), TF_END,
};
