/* The instructions of AVX-512 and AMX that csrc/conv/pairs.c uses, in plain C: included before a source that is compiled
 * for neither, so that the kernels run on processors that lack them. Written after Intel's Software Developer's Manual,
 * volume 2; numbers that are too small for a normal float32 are not set to zero. `emulated_faults` counts uses that a
 * processor answers with an exception. */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __AVX512F__ 1 /* conv/vector.h then has vectors of 64 bytes */

int64_t emulated_faults;
int64_t emulated_products; /* of matrices, each of 16 by 16 by up to 32 terms */

typedef float vector_16 __attribute__((vector_size(64)));
typedef float unaligned_16 __attribute__((vector_size(64), aligned(4), may_alias));

static inline float upper_number(float pair) {
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  bits &= 0xffff0000u;
  memcpy(&pair, &bits, sizeof bits);
  return pair;
}

static inline float lower_number(float pair) {
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  bits <<= 16;
  memcpy(&pair, &bits, sizeof bits);
  return pair;
}

static inline vector_16 emulated_multiply_add(vector_16 a, vector_16 b, vector_16 c) {
  for (int i = 0; i < 16; i++) c[i] = fmaf(a[i], b[i], c[i]);
  return c;
}

static inline vector_16 emulated_add_pairs(vector_16 c, vector_16 a, vector_16 b) {
  for (int i = 0; i < 16; i++) {
    c[i] = fmaf(upper_number(a[i]), upper_number(b[i]), c[i]);
    c[i] = fmaf(lower_number(a[i]), lower_number(b[i]), c[i]);
  }
  return c;
}

/* To the nearest bfloat16, ties to even; NaN is not looked for. */
static inline uint16_t emulated_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline vector_16 emulated_narrow(vector_16 high, vector_16 low) {
  uint16_t halves[32];
  vector_16 result;
  for (int i = 0; i < 16; i++) halves[i] = emulated_bfloat16(low[i]), halves[16 + i] = emulated_bfloat16(high[i]);
  memcpy(&result, halves, sizeof result);
  return result;
}

#define __m512 vector_16
#define __m512bh vector_16
#define __m512i vector_16
#define _mm512_fmadd_ps(a, b, c) emulated_multiply_add(a, b, c)
#define _mm512_dpbf16_ps(c, a, b) emulated_add_pairs(c, a, b)
#define _mm512_loadu_ps(from) ((vector_16)*(const unaligned_16 *)(from))
#define _mm512_storeu_si512(to, x) (*(unaligned_16 *)(to) = (x))
#define _mm512_cvtne2ps_pbh(high, low) emulated_narrow(high, low)

typedef struct emulated_tile {
  int rows, bytes;
  float numbers[16][16];
} emulated_tile;

static _Thread_local emulated_tile tiles[8];
static _Thread_local int configured;

static inline void emulated_configure(const void *sizes) {
  const uint8_t *bytes = sizes;
  emulated_faults += bytes[0] != 1 || bytes[1];
  for (int i = 2; i < 16; i++) emulated_faults += bytes[i] != 0;
  for (int i = 0; i < 8; i++) {
    tiles[i] = (emulated_tile){.rows = bytes[48 + i], .bytes = bytes[16 + 2 * i] + 256 * bytes[17 + 2 * i]};
    emulated_faults += tiles[i].rows > 16 || tiles[i].bytes > 64 || !tiles[i].rows != !tiles[i].bytes;
  }
  configured = 1;
}

static inline void emulated_load(int tile, const void *from, int64_t step) {
  emulated_tile *t = &tiles[tile];
  emulated_faults += !configured || !t->rows;
  memset(t->numbers, 0, sizeof t->numbers);
  for (int r = 0; r < t->rows; r++) memcpy(t->numbers[r], (const char *)from + r * step, (size_t)t->bytes);
}

static inline void emulated_store(int tile, void *to, int64_t step) {
  const emulated_tile *t = &tiles[tile];
  emulated_faults += !configured || !t->rows;
  for (int r = 0; r < t->rows; r++) memcpy((char *)to + r * step, t->numbers[r], (size_t)t->bytes);
}

static inline void emulated_product(int sums, int left, int right) {
  emulated_tile *c = &tiles[sums];
  const emulated_tile *a = &tiles[left], *b = &tiles[right];
  emulated_faults += !configured || !a->rows || a->rows != c->rows || a->bytes != 4 * b->rows || b->bytes != c->bytes;
  emulated_products++;
  for (int m = 0; m < c->rows; m++) {
    for (int n = 0; n < c->bytes / 4; n++) {
      float even = 0, odd = 0;
      for (int k = 0; k < a->bytes / 4; k++) {
        even = fmaf(lower_number(a->numbers[m][k]), lower_number(b->numbers[k][n]), even);
        odd = fmaf(upper_number(a->numbers[m][k]), upper_number(b->numbers[k][n]), odd);
      }
      c->numbers[m][n] += even + odd;
    }
  }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(sizes) emulated_configure(sizes)
#define _tile_release() (configured = 0)
#define _tile_loadd(tile, from, step) emulated_load(tile, from, (int64_t)(step))
#define _tile_stored(tile, to, step) emulated_store(tile, to, (int64_t)(step))
#define _tile_dpbf16ps(sums, left, right) emulated_product(sums, left, right)
