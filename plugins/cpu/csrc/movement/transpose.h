/* Transposes of a tile: to[i * ts + k * bytes] = from[k * ss + i * bytes] for i < across and k < along.
 *
 * A tile is TRANSPOSE_TILE_BYTES wide on the source's side, a cache line, so that what is read and written in one block
 * of it are whole lines; within a block, 4- and 8-byte elements are transposed in registers. */
#ifndef TIMBERFRAME_CPU_TRANSPOSE_H
#define TIMBERFRAME_CPU_TRANSPOSE_H

#include <stdint.h>

#define TRANSPOSE_TILE_BYTES 64

void transpose_1(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_2(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_4(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_8(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);
void transpose_16(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along);

#endif
