/* Checks of values, and the permutation that undoes one. */
#include <string.h>

#include "common/table.h"

/* Counts of NaN, +Inf and -Inf in one block of elements. */
typedef struct counts {
  int64_t nan, positive, negative;
} counts;

#define BLOCK 4096
#define MAX_BLOCKS 1024

typedef struct check_job {
  const char *data;
  int64_t size, blocks;
  int64_t (*odd)(const char *data, int64_t n);
  uint8_t found[MAX_BLOCKS];
} check_job;

/* For each format: whether any of n elements has an exponent of all ones, and the counts of those. */
#define DEFINE_FORMAT(name, type, exponent, fraction)                                                           \
  static int64_t odd_##name(const char *data, int64_t n) {                                                      \
    type any = 0;                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      type x;                                                                                                   \
      memcpy(&x, data + i * (int64_t)sizeof x, sizeof x);                                                       \
      any |= (type)((x & (exponent)) == (exponent));                                                            \
    }                                                                                                           \
    return any != 0;                                                                                            \
  }                                                                                                             \
  static counts count_##name(const char *data, int64_t n) {                                                     \
    counts c = {0, 0, 0};                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      type x;                                                                                                   \
      memcpy(&x, data + i * (int64_t)sizeof x, sizeof x);                                                       \
      if ((x & (exponent)) != (exponent)) continue;                                                             \
      if (x & (fraction)) c.nan++;                                                                              \
      else if (x >> (sizeof x * 8 - 1)) c.negative++;                                                           \
      else c.positive++;                                                                                        \
    }                                                                                                           \
    return c;                                                                                                   \
  }

DEFINE_FORMAT(float16, uint16_t, 0x7C00u, 0x03FFu)
DEFINE_FORMAT(bfloat16, uint16_t, 0x7F80u, 0x007Fu)
DEFINE_FORMAT(float32, uint32_t, 0x7F800000u, 0x007FFFFFu)
DEFINE_FORMAT(float64, uint64_t, 0x7FF0000000000000u, 0x000FFFFFFFFFFFFFu)

#define DEFINE_CHECK(name, type)                                                                                \
  static void scan_##name(void *argument, int64_t begin, int64_t end) {                                         \
    check_job *job = argument;                                                                                  \
    int64_t each = (job->size + job->blocks - 1) / job->blocks;                                                 \
    for (int64_t b = begin; b < end; b++) {                                                                     \
      int64_t first = b * each, n = job->size - first < each ? job->size - first : each;                        \
      job->found[b] = n > 0 && odd_##name(job->data + first * (int64_t)sizeof(type), n);                        \
    }                                                                                                           \
  }                                                                                                             \
  /* Reasons 1: NaN, +Inf, -Inf and all infinite elements as details. No parameters. */                         \
  static int32_t check_##name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,   \
                              const int64_t *parameters) {                                                      \
    (void)parameters;                                                                                           \
    check_job job = {.data = inputs[0]->data, .size = inputs[0]->size};                                         \
    job.blocks = (job.size + BLOCK - 1) / BLOCK;                                                                \
    if (job.blocks > MAX_BLOCKS) job.blocks = MAX_BLOCKS;                                                       \
    if (!job.size) return TF_OK;                                                                                \
    if (job.blocks <= 16) scan_##name(&job, 0, job.blocks);                                                     \
    else context->parallel_for(context, job.blocks, 8, scan_##name, &job);                                      \
    for (int64_t b = 0; b < job.blocks; b++) {                                                                  \
      if (!job.found[b]) continue;                                                                              \
      counts c = count_##name(job.data, job.size);                                                              \
      return tf_fail(context, TF_INVALID_ARGUMENT, 1, c.nan, c.positive, c.negative, c.positive + c.negative);  \
    }                                                                                                           \
    if (outputs[0]->data != inputs[0]->data && job.size)                                                        \
      memcpy(outputs[0]->data, inputs[0]->data, (size_t)job.size * sizeof(type));                               \
    return TF_OK;                                                                                               \
  }

DEFINE_CHECK(float16, uint16_t)
DEFINE_CHECK(bfloat16, uint16_t)
DEFINE_CHECK(float32, uint32_t)
DEFINE_CHECK(float64, uint64_t)

/* Reason 1: an element is no index (it, length - 1); reason 2: one occurs twice (the same). */
#define DEFINE_INVERT(name, type)                                                                               \
  static int32_t invert_permutation_##name(tf_context *context, const tf_tensor *const *inputs,                 \
                                           tf_tensor *const *outputs, const int64_t *parameters) {              \
    (void)parameters;                                                                                           \
    int64_t n = inputs[0]->size;                                                                                \
    const char *x = inputs[0]->data;                                                                            \
    char *y = outputs[0]->data;                                                                                 \
    if (n) memset(y, 0xFF, (size_t)n * sizeof(type));                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      type at, old, new = (type)i;                                                                              \
      memcpy(&at, x + i * (int64_t)sizeof at, sizeof at);                                                       \
      if (at < 0 || at >= n) return tf_fail(context, TF_INVALID_ARGUMENT, 1, at, n - 1, 0, 0);                  \
      memcpy(&old, y + at * (int64_t)sizeof at, sizeof old);                                                    \
      if (old != -1) return tf_fail(context, TF_INVALID_ARGUMENT, 2, at, n - 1, 0, 0);                          \
      memcpy(y + at * (int64_t)sizeof at, &new, sizeof new);                                                    \
    }                                                                                                           \
    return TF_OK;                                                                                               \
  }

DEFINE_INVERT(int32, int32_t)
DEFINE_INVERT(int64, int64_t)

TF_TABLE(movement_check) = {
  TF_ENTRY(check_float16), TF_ENTRY(check_bfloat16), TF_ENTRY(check_float32), TF_ENTRY(check_float64),
  TF_ENTRY(invert_permutation_int32), TF_ENTRY(invert_permutation_int64), TF_END
};
