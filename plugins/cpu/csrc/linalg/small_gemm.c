/* Small products of floats: tiles of C are kept in registers; B is copied to columns padded to whole vectors unless it
 * has that form already. Each element of C is summed in order of k. */
#include <string.h>

#include "linalg/gemm.h"
#include "reduce/vectors.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { TILE_VECTORS = 4 };
#define FLOAT32_FMA(a, b, c) (float32_vector) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define FLOAT64_FMA(a, b, c) (float64_vector) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#elif defined(__FMA__)
enum { TILE_VECTORS = 2 };
#define FLOAT32_FMA(a, b, c) (float32_vector) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define FLOAT64_FMA(a, b, c) (float64_vector) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#else
enum { TILE_VECTORS = 2 };
#define FLOAT32_FMA(a, b, c) ((a) * (b) + (c))
#define FLOAT64_FMA(a, b, c) ((a) * (b) + (c))
#endif

#define INLINE static inline __attribute__((always_inline))

/* With AVX-512 the BLAS has kernels for small products of float32 that mask what fills no vector; here it is copied. */
#define BLAS_MASKS(type) (VECTOR_BYTES == 64 && sizeof(type) == sizeof(float))

/* For a few rows, packing B takes the BLAS as long as multiplying. With AVX2 whole vectors of any B that lies in order are
 * read in place instead. */
#define READS_IN_PLACE(type, g, count)                                                                       \
  (VECTOR_BYTES == 32 && sizeof(type) == sizeof(float) && !(g)->transpose_b && (g)->n % (count) == 0 &&      \
   (g)->m >= 2 && (g)->m <= FEW_ROWS)

enum { FEW_ROWS = 16, LEAST_MASKED = 8 * 8 * 8, TILE_ROWS = 6, MOST_COLUMNS = 128, MOST_DEPTH = 128, MOST_WORK = 80 * 80 * 80 };

/* Terms of one part of all sums. Rows of B may lie as far apart as pages; so many of them the processor can follow. */
enum { PART_DEPTH = 256 };

#define SMALL_GEMM(name, type, FMA)                                                                                  \
  /* rows and vectors are constants at each call, so that the tile stays in registers. add: to what C holds, whose   \
     columns are then whole vectors. */                                                                              \
  INLINE void name##_tile(int rows, int vectors, int64_t depth, const type *a, int64_t a_row, int64_t a_step,        \
                          const type *b, int64_t b_row, type *c, int64_t ldc, int64_t columns, int add) {            \
    enum { COUNT = VECTOR_BYTES / sizeof(type) };                                                                    \
    name##_vector tile[TILE_ROWS][TILE_VECTORS];                                                                     \
    for (int i = 0; i < rows; i++) {                                                                                 \
      for (int v = 0; v < vectors; v++) {                                                                            \
        tile[i][v] = add ? name##_load(c + i * ldc + v * COUNT) : name##_spread(0);                                  \
      }                                                                                                              \
    }                                                                                                                \
    for (int64_t k = 0; k < depth; k++) {                                                                            \
      name##_vector row[TILE_VECTORS];                                                                               \
      for (int v = 0; v < vectors; v++) row[v] = name##_load(b + k * b_row + v * COUNT);                             \
      for (int i = 0; i < rows; i++) {                                                                               \
        const name##_vector x = name##_spread(a[i * a_row + k * a_step]);                                            \
        for (int v = 0; v < vectors; v++) tile[i][v] = FMA(x, row[v], tile[i][v]);                                   \
      }                                                                                                              \
    }                                                                                                                \
    if (columns == vectors * COUNT) {                                                                                \
      for (int i = 0; i < rows; i++) {                                                                               \
        for (int v = 0; v < vectors; v++) memcpy(c + i * ldc + v * COUNT, &tile[i][v], sizeof tile[i][v]);           \
      }                                                                                                              \
      return;                                                                                                        \
    }                                                                                                                \
    type whole[TILE_ROWS][TILE_VECTORS * COUNT];                                                                     \
    for (int i = 0; i < rows; i++) {                                                                                 \
      for (int v = 0; v < vectors; v++) memcpy(whole[i] + v * COUNT, &tile[i][v], sizeof tile[i][v]);                \
    }                                                                                                                \
    for (int i = 0; i < rows; i++) {                                                                                 \
      for (int64_t j = 0; j < columns; j++) c[i * ldc + j] = whole[i][j];                                            \
    }                                                                                                                \
  }                                                                                                                  \
  INLINE void name##_panel(int vectors, const gemm_block *g, const type *a, const type *b, int64_t b_row, type *c,   \
                           int64_t columns, int add) {                                                               \
    const int64_t row = g->transpose_a ? 1 : g->lda, step = g->transpose_a ? g->lda : 1;                             \
    int64_t i = 0;                                                                                                   \
    for (; i + TILE_ROWS <= g->m && g->m - i != 8; i += TILE_ROWS) { /* two rows are too few sums to add to */       \
      name##_tile(TILE_ROWS, vectors, g->k, a + i * row, row, step, b, b_row, c + i * g->ldc, g->ldc, columns, add); \
    }                                                                                                                \
    for (; i + 4 <= g->m; i += 4) {                                                                                  \
      name##_tile(4, vectors, g->k, a + i * row, row, step, b, b_row, c + i * g->ldc, g->ldc, columns, add);         \
    }                                                                                                                \
    if (g->m - i >= 2) {                                                                                             \
      name##_tile(2, vectors, g->k, a + i * row, row, step, b, b_row, c + i * g->ldc, g->ldc, columns, add);         \
      i += 2;                                                                                                        \
    }                                                                                                                \
    if (g->m > i) {                                                                                                  \
      name##_tile(1, vectors, g->k, a + i * row, row, step, b, b_row, c + i * g->ldc, g->ldc, columns, add);         \
    }                                                                                                                \
  }                                                                                                                  \
  static void name##_part(const gemm_block *g, const type *a, const type *b, type *c, int add) {                     \
    enum { COUNT = VECTOR_BYTES / sizeof(type), WIDTH = TILE_VECTORS * COUNT };                                      \
    type copy[MOST_DEPTH * WIDTH];                                                                                   \
    const int64_t b_row = g->transpose_b ? 1 : g->ldb, b_step = g->transpose_b ? g->ldb : 1;                         \
    for (int64_t j0 = 0; j0 < g->n; j0 += WIDTH) {                                                                   \
      const int64_t columns = g->n - j0 < WIDTH ? g->n - j0 : WIDTH;                                                 \
      const int64_t vectors = (columns + COUNT - 1) / COUNT;                                                         \
      const type *panel = b + j0 * b_step;                                                                           \
      int64_t panel_row = b_row;                                                                                     \
      if (g->transpose_b || columns != vectors * COUNT) {                                                            \
        for (int64_t k = 0; k < g->k; k++) {                                                                         \
          for (int64_t j = 0; j < columns; j++) copy[k * WIDTH + j] = panel[k * b_row + j * b_step];                 \
          for (int64_t j = columns; j < vectors * COUNT; j++) copy[k * WIDTH + j] = 0;                               \
        }                                                                                                            \
        panel = copy;                                                                                                \
        panel_row = WIDTH;                                                                                           \
      }                                                                                                              \
      if (vectors == 1) name##_panel(1, g, a, panel, panel_row, c + j0, columns, add);                               \
      else if (vectors == 2) name##_panel(2, g, a, panel, panel_row, c + j0, columns, add);                          \
      else if (vectors == 3) name##_panel(TILE_VECTORS - 1, g, a, panel, panel_row, c + j0, columns, add);           \
      else name##_panel(TILE_VECTORS, g, a, panel, panel_row, c + j0, columns, add);                                 \
    }                                                                                                                \
  }                                                                                                                  \
  int small_gemm_##name(const gemm_block *g, const void *a_data, const void *b_data, void *c) {                      \
    enum { COUNT = VECTOR_BYTES / sizeof(type) };                                                                    \
    const int64_t work = g->m * g->n * g->k;                                                                         \
    const int small = g->n <= MOST_COLUMNS && g->k <= MOST_DEPTH && work <= MOST_WORK;                               \
    if (!small && !READS_IN_PLACE(type, g, COUNT)) return -1;                                                        \
    const int masked = g->n % COUNT && g->m >= TILE_ROWS && g->transpose_a >= g->transpose_b;                        \
    if (BLAS_MASKS(type) && masked && work >= LEAST_MASKED) return -1;                                               \
    const type *a = a_data, *b = b_data;                                                                             \
    const int64_t a_step = g->transpose_a ? g->lda : 1, b_row = g->transpose_b ? 1 : g->ldb;                         \
    gemm_block part = *g;                                                                                            \
    for (int64_t k = 0; k < g->k; k += PART_DEPTH) {                                                                 \
      part.k = g->k - k < PART_DEPTH ? g->k - k : PART_DEPTH;                                                        \
      name##_part(&part, a + k * a_step, b + k * b_row, c, k > 0);                                                   \
    }                                                                                                                \
    return 0;                                                                                                        \
  }

SMALL_GEMM(float32, float, FLOAT32_FMA)
SMALL_GEMM(float64, double, FLOAT64_FMA)
