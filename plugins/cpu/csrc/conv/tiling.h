/* How conv/implicit.inc cuts a convolution into tiles, panels and blocks. */
#ifndef TIMBERFRAME_CPU_CONV_TILING_H
#define TIMBERFRAME_CPU_CONV_TILING_H

#include <stdint.h>

#include "conv/vector.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#if TF_VECTOR_BYTES == 64
#define PANEL_VECTORS 4
#else
#define PANEL_VECTORS 2
#endif
#define ROW_VECTORS 8 /* registers of sums that a single pixel takes: as many as hide the time of an addition */
#define ROW_PANELS (ROW_VECTORS / PANEL_VECTORS)
#define FEW_TERMS 64 /* terms of panels side by side that all of a few pixels use before the next */
#if TF_VECTOR_BYTES == 32
#define MOST_FEW_PIXELS 9 /* most pixels that take several panels at a time */
#else
#define MOST_FEW_PIXELS 1
#endif
#if TF_VECTOR_BYTES == 64
#define LEAST_DENSE_PIXELS MAXIMUM_ROWS /* pixels of a dense image from which on they are a strip */
#else
#define LEAST_DENSE_PIXELS 7
#endif
#if defined(TF_ISA_AMX)
#define MAXIMUM_ROWS 16
#define BLOCK_STEP 16 /* blocks are multiples of it, the rows of the widest tile */
#define TOGETHER 16 /* images of many channels whose pixels at one place make a tile: they meet the same taps */
#define LEAST_STRIP_PIXELS 16 /* width of results from which on its lines are strips, where pixels are made of single ones */
#define LEAST_LINE_PIXELS 16 /* width of results from which on lines of the image are copied, see below */
#else
#define MAXIMUM_ROWS 12
#define BLOCK_STEP 6
#define TOGETHER 6
#define LEAST_STRIP_PIXELS 6
#define LEAST_LINE_PIXELS 12
#endif
#define CACHE_LINE 64 /* bytes: at least one is fetched at a time */
#define AHEAD (8192 / (PANEL_VECTORS * TF_VECTOR_BYTES)) /* rows of a panel that are fetched ahead */
/* The bytes of a panel's row of `vectors` for each of so many pixels. */
#define SHARE(vectors, pixels) ((vectors) * TF_VECTOR_BYTES / (pixels) + 1)
/* To which cache level: to the second, to the first where a tile of few rows needs them soon. */
#define NEARNESS(rows) ((rows) > TF_VECTOR_BYTES / 16 ? 2 : 3)
#define MAXIMUM_SEGMENTS 64  /* taps whose pointers are held at a time */
#define BLOCK_TERMS 1024     /* summed terms at a time: their part of a panel stays in the second-level cache */
#define BLOCK_PIXELS 192     /* most pixels that share a panel while it is there */
#define UNITS_PER_THREAD 4   /* so many blocks of pixels and panels at least, where there are enough pixels */
#define PACKING_PIXELS 512   /* pixels from which on a packed filter pays */
#define SERIAL_TERMS 32768   /* products worth a thread */
#define SCANNED_PIXELS 256   /* pixels from which on it pays to look whether a filter is finite */
#define GATHERED_TERMS 8192  /* most terms of a single pixel whose window is copied together: they fit on the stack */
#define MOST_LINE_ELEMENTS 16384 /* most elements of all lines that a window meets for them to be copied: they fit on the stack */
#define LEAST_SHARE_OF_LINE 0.9 /* least share of the taps along a line in the image for that, from LEAST_TAP_TERMS on */
#define TRIMMED_CHANNELS 16  /* input channels from which on taps outside the image are left out of a row */
#define LEAST_TAP_TERMS 64   /* input channels from which on taps are applied one by one */
#define MOST_TAP_PIXELS 4    /* ... if the image has at most so many pixels for each tap of a window's side, */
#define MOST_SHARE_INSIDE 0.9 /* ... and no more of all taps are in the image than this, */
#define MOST_SHARE_TOGETHER 0.75 /* ... nor than this, where TOGETHER images make tiles whose pixels meet the same taps */

/* The pixels of a tile: of each the first tap of its window, negative where it hangs over the edge, that tap's element in
 * the image, and the element where its result begins; and the least and the greatest of the first taps. */
typedef struct tile_pixels {
  int64_t y[MAXIMUM_ROWS], x[MAXIMUM_ROWS], in[MAXIMUM_ROWS], out[MAXIMUM_ROWS];
  int64_t least_y, most_y, least_x, most_x;
} tile_pixels;

#endif
