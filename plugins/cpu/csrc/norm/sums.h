/* Sums of each channel over a batch, of tensors seen as [outer, channels, inner], inner being 1 where channels come last.
 *
 * They are in float64, of blocks of rows whose number does not depend on the threads, then of the blocks. The channels of
 * a group keep their sums in registers while the rows of a block go by. */
#ifndef TIMBERFRAME_CPU_NORM_SUMS_H
#define TIMBERFRAME_CPU_NORM_SUMS_H

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "common/table.h"
#include "reduce/vectors.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_BLOCKS 64
#define BLOCK_VALUES 16384 /* least values in a block */
#define SUMS 8             /* partial sums of a contiguous run */
#define GROUP 4            /* registers of channels that are added up together */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(double)))
#define INLINE static inline __attribute__((always_inline))

typedef float narrow_vector __attribute__((vector_size(VECTOR_BYTES / 2)));

/* __builtin_convertvector would convert the halves of a register by themselves. */
static inline float64_vector widen(narrow_vector x) {
#if defined(__AVX512F__)
  return (float64_vector)_mm512_cvtps_pd((__m256)x);
#elif defined(__AVX2__)
  return (float64_vector)_mm256_cvtps_pd((__m128)x);
#else
  return __builtin_convertvector(x, float64_vector);
#endif
}

/* With the deviations d = x - centers: the sums of w and of w d, w being the weights, or d itself. */
typedef struct channel_sums {
  int64_t outer, channels, inner;
  const void *x, *weights; /* both are x where w is d */
  const double *centers;
  double *sums; /* [MAXIMUM_BLOCKS, 2, channels]; in the end the first block has the sums of all */
  int64_t blocks, rows;
} channel_sums;

/* sum_blocks_<type> for channels that come last, units being blocks; sum_channels_<type> for others. WEIGHTED: whether
 * w are the weights. */
#define CHANNEL_SUMS(NAME, S, LOAD, WEIGHTED)                                                                     \
  INLINE float64_vector widen_##NAME(const S *x) {                                                                \
    float values[VECTOR_BYTES / sizeof(double)];                                                                  \
    for (int64_t i = 0; i < LANES; i++) values[i] = LOAD(x[i]);                                                   \
    narrow_vector v;                                                                                              \
    memcpy(&v, values, sizeof v);                                                                                 \
    return widen(v);                                                                                              \
  }                                                                                                               \
  INLINE void add_lanes_##NAME(const S *x, const S *weights, int vectors, const float64_vector *centers,          \
                               float64_vector *plain, float64_vector *weighted) {                                 \
    for (int v = 0; v < vectors; v++) {                                                                           \
      float64_vector d = widen_##NAME(x + v * LANES) - centers[v];                                                \
      float64_vector w = WEIGHTED ? widen_##NAME(weights + v * LANES) : d;                                        \
      plain[v] += w;                                                                                              \
      weighted[v] += w * d;                                                                                       \
    }                                                                                                             \
  }                                                                                                               \
  INLINE void add_one_##NAME(const S *x, const S *weights, double center, double *plain, double *weighted) {      \
    double d = LOAD(*x) - center, w = WEIGHTED ? LOAD(*weights) : d;                                              \
    *plain += w;                                                                                                  \
    *weighted += w * d;                                                                                           \
  }                                                                                                               \
  /* The channels from `at` on, of some rows. */                                                                  \
  INLINE void sum_group_##NAME(const channel_sums *job, int64_t first, int64_t last, int64_t at, int vectors,     \
                               double *sums) {                                                                    \
    float64_vector plain[GROUP] = {{0}}, weighted[GROUP] = {{0}}, centers[GROUP];                                 \
    for (int v = 0; v < vectors; v++) centers[v] = float64_load(job->centers + at + v * LANES);                   \
    for (int64_t row = first; row < last; row++) {                                                                \
      int64_t from = row * job->channels + at, next = from + vectors * LANES;                                     \
      __builtin_prefetch((const S *)job->x + next); /* the next group's, when it is not in the cache yet */       \
      if (WEIGHTED) __builtin_prefetch((const S *)job->weights + next);                                           \
      add_lanes_##NAME((const S *)job->x + from, (const S *)job->weights + from, vectors, centers, plain, weighted); \
    }                                                                                                             \
    memcpy(sums + at, plain, (size_t)vectors * VECTOR_BYTES);                                                     \
    memcpy(sums + job->channels + at, weighted, (size_t)vectors * VECTOR_BYTES);                                  \
  }                                                                                                               \
  static void sum_blocks_##NAME(void *argument, int64_t begin, int64_t end) {                                     \
    const channel_sums *job = argument;                                                                           \
    int64_t channels = job->channels;                                                                             \
    for (int64_t block = begin; block < end; block++) {                                                           \
      int64_t first = block * job->rows, last = MINIMUM(first + job->rows, job->outer), c = 0;                    \
      double *sums = job->sums + block * 2 * channels;                                                            \
      for (; c + GROUP * LANES <= channels; c += GROUP * LANES) sum_group_##NAME(job, first, last, c, GROUP, sums); \
      for (; c + LANES <= channels; c += LANES) sum_group_##NAME(job, first, last, c, 1, sums);                   \
      for (; c < channels; c++) {                                                                                 \
        double plain = 0, weighted = 0;                                                                           \
        for (int64_t at = first * channels + c; at < last * channels; at += channels) {                           \
          add_one_##NAME((const S *)job->x + at, (const S *)job->weights + at, job->centers[c], &plain, &weighted); \
        }                                                                                                         \
        sums[c] = plain, sums[channels + c] = weighted;                                                           \
      }                                                                                                           \
    }                                                                                                             \
  }                                                                                                               \
  static void sum_channels_##NAME(void *argument, int64_t begin, int64_t end) {                                   \
    enum { VECTORS = SUMS * sizeof(double) / VECTOR_BYTES };                                                      \
    const channel_sums *job = argument;                                                                           \
    int64_t inner = job->inner;                                                                                   \
    for (int64_t c = begin; c < end; c++) {                                                                       \
      float64_vector plain[VECTORS] = {{0}}, weighted[VECTORS] = {{0}}, centers[VECTORS];                         \
      double plains[SUMS], weighteds[SUMS], rest[2] = {0};                                                        \
      for (int v = 0; v < VECTORS; v++) centers[v] = float64_spread(job->centers[c]);                             \
      for (int64_t n = 0; n < job->outer; n++) {                                                                  \
        int64_t at = (n * job->channels + c) * inner, i = 0;                                                      \
        const S *x = (const S *)job->x + at, *weights = (const S *)job->weights + at;                             \
        for (; i + SUMS <= inner; i += SUMS) add_lanes_##NAME(x + i, weights + i, VECTORS, centers, plain, weighted); \
        for (; i < inner; i++) add_one_##NAME(x + i, weights + i, job->centers[c], &rest[0], &rest[1]);           \
      }                                                                                                           \
      memcpy(plains, plain, sizeof plains), memcpy(weighteds, weighted, sizeof weighteds);                        \
      for (int k = 0; k < SUMS; k++) rest[0] += plains[k], rest[1] += weighteds[k];                               \
      job->sums[c] = rest[0], job->sums[job->channels + c] = rest[1];                                             \
    }                                                                                                             \
  }

/* Adds up what the other members of the job say. */
static inline void add_up(tf_context *context, channel_sums *job, tf_range *sum_blocks, tf_range *sum_channels) {
  int64_t least = BLOCK_VALUES / job->channels + 1, rows = (job->outer + MAXIMUM_BLOCKS - 1) / MAXIMUM_BLOCKS;
  job->rows = rows < least ? least : rows;
  job->blocks = job->inner == 1 ? (job->outer + job->rows - 1) / job->rows : 1;
  if (job->inner == 1) {
    context->parallel_for(context, job->blocks, 1, sum_blocks, job);
  } else {
    context->parallel_for(context, job->channels, 1 + BLOCK_VALUES / (job->outer * job->inner), sum_channels, job);
  }
  for (int64_t b = 1; b < job->blocks; b++) {
    for (int64_t c = 0; c < 2 * job->channels; c++) job->sums[c] += job->sums[b * 2 * job->channels + c];
  }
}

#endif
