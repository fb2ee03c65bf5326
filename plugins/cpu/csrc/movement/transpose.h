/* Transposes and reversals, in registers where the size of the elements allows.
 *
 * A transpose of a tile: to[i * ts + k * bytes] = from[k * ss + i * bytes] for i < across and k < along.
 *
 * A tile is TRANSPOSE_TILE_BYTES wide on the source's side, a cache line, so that what is read and written in one block
 * of it are whole lines; within a block, 4- and 8-byte elements are transposed in registers. */
#ifndef TIMBERFRAME_CPU_TRANSPOSE_H
#define TIMBERFRAME_CPU_TRANSPOSE_H

#include <stdint.h>

#define TRANSPOSE_TILE_BYTES 64

/* Where the target's rows have fewer elements than this, a tile is as wide as the first-level cache can take. */
#define TRANSPOSE_NARROW 4
#define TRANSPOSE_NARROW_TILE_BYTES 4096

void transpose_1(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_2(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_4(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_8(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_16(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);

/* to[i] = from[-i] for n elements of 4 and 8 bytes. */
void reverse_4(char *to, const char *from, int64_t n);
void reverse_8(char *to, const char *from, int64_t n);

#endif
