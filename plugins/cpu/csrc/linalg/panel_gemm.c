/* Products of float32 for instruction sets with 32 wide registers.
 *
 * C grows by tiles of 6 rows and 64 columns, which with a row of B fill the registers. The first tile of a panel of 64
 * columns reads B where it lies and leaves a dense copy in the second cache level for the tiles below; where B is
 * transposed the panel is transposed first. A is read in place, whether transposed or not: what is needed of it next is
 * fetched beforehand, and so are the elements of C. Each element is summed in order of k, in parts of equal depth whose
 * sums are added in order. */
#include "linalg/gemm.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#include <string.h>

/* Before a loop that is to be unrolled four times. */
#if defined(__clang__)
#define UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL_4 _Pragma("GCC unroll 4")
#endif

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = 16,
  VECTORS = 4,
  WIDTH = VECTORS * LANES,
  TILE_ROWS = 6,
  DEPTH = 1024,        /* a panel takes a quarter of the second cache level */
  PART_ROWS = 2046,    /* a part of A stays in the third while it meets all panels */
  STRETCH = 16,        /* terms between two rounds of fetching A: one cache line */
  AHEAD = 32,          /* rows of B, or of a transposed A, that are prefetched */
  SMALL_WORK = 1000000 /* up to here the BLAS takes its kernels for small products, which copy nothing */
};

typedef struct tile_operands {
  const float *a, *next; /* of A the first elements of this tile and of the one after it */
  int64_t row, step;     /* elements between rows of A, and between neighbours in a row */
  int64_t depth;
  float *c;
  int64_t ldc, columns; /* columns: those of C, of which the last vector may lack some */
  int add;              /* to what C holds */
} tile_operands;

/* `rows` and `vectors` are constants at each call, so that the tile stays in registers. B's rows are b_row apart; copy:
 * where they go one after the other, or NULL. */
INLINE void tile(int rows, int vectors, const tile_operands *p, const float *b, int64_t b_row, float *copy) {
  __m512 sum[TILE_ROWS][VECTORS];
  for (int i = 0; i < rows; i++) {
    for (int v = 0; v < vectors; v++) {
      __builtin_prefetch(p->c + i * p->ldc + v * LANES, 1);
      sum[i][v] = _mm512_setzero_ps();
    }
  }
  const float *a = p->a, *next = p->next;
  const int64_t row = p->row, step = p->step;
  for (int64_t k = 0; k < p->depth;) {
    const int64_t end = p->depth - k < STRETCH ? p->depth : k + STRETCH;
    for (int i = 0; i < rows && step == 1; i++) __builtin_prefetch(next + i * row, 0, 2);
    next += STRETCH;
    UNROLL_4 for (; k < end; k++, a += step, b += b_row) {
      if (step != 1) {
        __builtin_prefetch(a + AHEAD * step, 0, 2);
        __builtin_prefetch(a + AHEAD * step + rows - 1, 0, 2);
      }
      __m512 terms[VECTORS];
      for (int v = 0; v < vectors; v++) terms[v] = _mm512_loadu_ps(b + v * LANES);
      for (int v = 0; v < vectors && copy; v++) {
        _mm512_store_ps(copy + v * LANES, terms[v]);
        __builtin_prefetch(b + AHEAD * b_row + v * LANES, 0, 2);
      }
      if (copy) copy += WIDTH;
      for (int i = 0; i < rows; i++) {
        const __m512 x = _mm512_set1_ps(a[i * row]);
        for (int v = 0; v < vectors; v++) sum[i][v] = _mm512_fmadd_ps(x, terms[v], sum[i][v]);
      }
    }
  }
  for (int i = 0; i < rows; i++) {
    for (int v = 0; v < vectors; v++) {
      const int64_t left = p->columns - v * LANES;
      const __mmask16 present = left < LANES ? (__mmask16)((1 << left) - 1) : (__mmask16)-1;
      float *c = p->c + i * p->ldc + v * LANES;
      if (p->add) sum[i][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(present, c), sum[i][v]);
      if (left >= LANES) _mm512_storeu_ps(c, sum[i][v]);
      else _mm512_mask_storeu_ps(c, present, sum[i][v]);
    }
  }
}

#define TILE(rows, vectors)                                                                    \
  static void tile_##rows##x##vectors(const tile_operands *p, const float *b, int64_t b_row) { \
    tile(rows, vectors, p, b, b_row, NULL);                                                    \
  }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#define NAMES(rows) {tile_##rows##x1, tile_##rows##x2, tile_##rows##x3, tile_##rows##x4}
static void (*const tiles[TILE_ROWS][VECTORS])(const tile_operands *, const float *, int64_t) = {
    NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6)};

/* The first tile of a panel. */
static void copying_tile(const tile_operands *p, const float *b, int64_t b_row, float *panel) {
  tile(TILE_ROWS, VECTORS, p, b, b_row, panel);
}

/* 16 x 16 elements transposed: row j of `in` becomes column j of `out`. */
static void transpose_block(const float *in, int64_t in_row, float *out) {
  __m512 a[16], b[16];
  for (int j = 0; j < 16; j++) a[j] = _mm512_loadu_ps(in + j * in_row);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) { /* a[i + q]: in each quarter, four rows' column 4 * quarter + q */
    for (int q = 0; q < 2; q++) {
      const __m512d low = _mm512_castps_pd(b[i + q]), high = _mm512_castps_pd(b[i + q + 2]);
      a[i + 2 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      a[i + 2 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  }
  for (int q = 0; q < 4; q++) { /* even and odd quarters of rows 0-7 and 8-15 */
    for (int half = 0; half < 16; half += 8) {
      b[half + q] = _mm512_shuffle_f32x4(a[half + q], a[half + q + 4], 0x88);
      b[half + q + 4] = _mm512_shuffle_f32x4(a[half + q], a[half + q + 4], 0xdd);
    }
  }
  for (int q = 0; q < 4; q++) {
    for (int odd = 0; odd < 8; odd += 4) {
      _mm512_store_ps(out + (q + odd) * WIDTH, _mm512_shuffle_f32x4(b[q + odd], b[q + odd + 8], 0x88));
      _mm512_store_ps(out + (q + odd + 8) * WIDTH, _mm512_shuffle_f32x4(b[q + odd], b[q + odd + 8], 0xdd));
    }
  }
}

/* The panel of a B that is stored transposed: `columns` rows of `depth` elements, and zeros up to whole vectors. */
static void transpose_panel(const float *b, int64_t ldb, int64_t columns, int64_t depth, float *panel) {
  for (int64_t j = 0; j < columns; j += LANES) {
    const int64_t present = columns - j < LANES ? columns - j : LANES;
    int64_t k = 0;
    for (; present == LANES && k + LANES <= depth; k += LANES) {
      transpose_block(b + j * ldb + k, ldb, panel + k * WIDTH + j);
    }
    for (; k < depth; k++) {
      for (int64_t i = 0; i < LANES; i++) panel[k * WIDTH + j + i] = i < present ? b[(j + i) * ldb + k] : 0;
    }
  }
}

/* The panel of columns that fill no whole vector. */
static void copy_panel(const float *b, int64_t ldb, int64_t columns, int64_t depth, float *panel) {
  for (int64_t k = 0; k < depth; k++, b += ldb, panel += WIDTH) {
    memcpy(panel, b, (size_t)columns * sizeof(float));
    memset(panel + columns, 0, (size_t)(WIDTH - columns) * sizeof(float));
  }
}

/* Some rows of one panel of columns, of which b holds the first; at: the operands of the first tile. */
static void multiply_panel(const gemm_block *g, int64_t rows, tile_operands at, const float *b, float *panel) {
  const int64_t vectors = (at.columns + LANES - 1) / LANES, a_tile = TILE_ROWS * at.row, c_tile = TILE_ROWS * at.ldc;
  const float *first = at.a;
  int64_t b_row = g->ldb;
  int copying = 0;
  if (g->transpose_b) transpose_panel(b, g->ldb, at.columns, at.depth, panel);
  else if (at.columns % LANES) copy_panel(b, g->ldb, at.columns, at.depth, panel);
  else copying = at.columns == WIDTH && rows > TILE_ROWS;
  if (g->transpose_b || at.columns % LANES) b = panel, b_row = WIDTH;
  for (int64_t i = 0; i < rows; i += TILE_ROWS, at.a += a_tile, at.c += c_tile) {
    const int64_t left = rows - i;
    at.next = left >= 2 * TILE_ROWS ? at.a + a_tile : first;
    if (copying) {
      copying_tile(&at, b, b_row, panel);
      copying = 0, b = panel, b_row = WIDTH;
    } else {
      tiles[left < TILE_ROWS ? left - 1 : TILE_ROWS - 1][vectors - 1](&at, b, b_row);
    }
  }
}

/* The size of the parts into which `count` is cut evenly, a multiple of `unit` and at most `most`, which is one too. */
static int64_t part_size(int64_t count, int64_t most, int64_t unit) {
  const int64_t parts = (count + most - 1) / most, size = (count + parts - 1) / parts;
  return (size + unit - 1) / unit * unit;
}

int panel_gemm_float32(const gemm_block *g, const void *a_data, const void *b_data, void *c_data) {
  const int64_t unused = -g->n & (LANES - 1);
  if (g->m < 2 || unused * LANES > g->n || g->m * g->n * g->k <= SMALL_WORK) return -1;
  const float *a = a_data, *b = b_data;
  float *c = c_data, panel[DEPTH * WIDTH] __attribute__((aligned(64)));
  const int64_t row = g->transpose_a ? 1 : g->lda, step = g->transpose_a ? g->lda : 1;
  const int64_t b_row = g->transpose_b ? 1 : g->ldb, b_step = g->transpose_b ? g->ldb : 1;
  const int64_t most_rows = part_size(g->m, PART_ROWS, TILE_ROWS), most_depth = part_size(g->k, DEPTH, 1);
  for (int64_t i = 0; i < g->m; i += most_rows) {
    const int64_t rows = g->m - i < most_rows ? g->m - i : most_rows;
    for (int64_t k = 0; k < g->k; k += most_depth) {
      const int64_t depth = g->k - k < most_depth ? g->k - k : most_depth;
      for (int64_t j = 0; j < g->n; j += WIDTH) {
        const tile_operands at = {a + i * row + k * step, NULL, row, step, depth, c + i * g->ldc + j, g->ldc,
                               g->n - j < WIDTH ? g->n - j : WIDTH, k > 0};
        multiply_panel(g, rows, at, b + k * b_row + j * b_step, panel);
      }
    }
  }
  return 0;
}

#else

int panel_gemm_float32(const gemm_block *g, const void *a, const void *b, void *c) {
  (void)g, (void)a, (void)b, (void)c;
  return -1; /* with half the registers, and half the width, the BLAS is faster */
}

#endif
