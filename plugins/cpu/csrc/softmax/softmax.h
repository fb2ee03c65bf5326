/* Softmax and LogSoftmax of rows, in the precision whose names (unary/precision_*.h) are in force.
 *
 * A row is read three times while it lies in the cache: its largest element, the sum of exponentials of the
 * differences to it, the results. The last elements of a row are worked on in a block filled up with -inf, whose
 * exponential is 0. A NaN in the row makes all results NaN by way of the sum. */
#ifndef TIMBERFRAME_CPU_SOFTMAX_H
#define TIMBERFRAME_CPU_SOFTMAX_H

enum { LANES = 64, SHORT_LANES = 16, WORK_GRAIN = 1 << 13 };

typedef struct softmax_job {
  const void *input;
  void *output;
  int64_t length;
} softmax_job;

static inline __attribute__((always_inline)) void add_exponentials(int64_t count, const TF_REAL *x, TF_REAL highest,
                                                                   TF_REAL *out, TF_REAL *sums) {
  for (int64_t j = 0; j < count; j++) {
    const TF_REAL e = TF_F(exp)(x[j] - highest);
    out[j] = e;
    sums[j] += e;
  }
}

/* Loads, as TF_REAL, `count` elements (at most SHORT_LANES) and fills up the block. */
#define SOFTMAX_ROW(name, ELEMENT, convert, store, keeps)                                                     \
  static inline const TF_REAL *name##_block(const ELEMENT *x, int64_t lanes, int64_t count, TF_REAL *block) { \
    convert(block, x, count);                                                                                 \
    for (int64_t j = count; j < lanes; j++) block[j] = -TF_INFINITY;                                          \
    return block;                                                                                             \
  }                                                                                                           \
  static TF_REAL name##_highest(const ELEMENT *x, int64_t length) {                                           \
    TF_REAL lanes[LANES], block[LANES];                                                                       \
    int64_t i = 0;                                                                                            \
    for (int64_t j = 0; j < LANES; j++) lanes[j] = -TF_INFINITY;                                              \
    for (; i + LANES <= length; i += LANES) {                                                                 \
      convert(block, x + i, LANES);                                                                           \
      for (int64_t j = 0; j < LANES; j++) lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];               \
    }                                                                                                         \
    for (; i < length; i += SHORT_LANES) {                                                                    \
      name##_block(x + i, SHORT_LANES, length - i < SHORT_LANES ? length - i : SHORT_LANES, block);           \
      for (int64_t j = 0; j < SHORT_LANES; j++) lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];         \
    }                                                                                                         \
    for (int64_t half = LANES / 2; half > 0; half /= 2) {                                                     \
      for (int64_t j = 0; j < half; j++) lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];  \
    }                                                                                                         \
    return lanes[0];                                                                                          \
  }                                                                                                           \
  /* The sum of exponentials; leaves them in `out` where the output can hold them exactly. */                 \
  static TF_REAL name##_sum(const ELEMENT *x, int64_t length, TF_REAL highest, ELEMENT *out) {                \
    TF_REAL sums[LANES] = {0}, block[LANES], terms[LANES];                                                    \
    int64_t i = 0;                                                                                            \
    for (; i + LANES <= length; i += LANES) {                                                                 \
      convert(block, x + i, LANES);                                                                           \
      add_exponentials(LANES, block, highest, terms, sums);                                                   \
      if (keeps && out) store(out + i, terms, LANES);                                                         \
    }                                                                                                         \
    for (; i < length; i += SHORT_LANES) {                                                                    \
      const int64_t count = length - i < SHORT_LANES ? length - i : SHORT_LANES;                              \
      name##_block(x + i, SHORT_LANES, count, block);                                                         \
      add_exponentials(SHORT_LANES, block, highest, terms, sums);                                             \
      if (keeps && out) store(out + i, terms, count);                                                         \
    }                                                                                                         \
    for (int64_t half = LANES / 2; half > 0; half /= 2) {                                                     \
      for (int64_t j = 0; j < half; j++) sums[j] += sums[j + half];                                           \
    }                                                                                                         \
    return sums[0];                                                                                           \
  }                                                                                                           \
  static void softmax_##name##_rows(void *argument, int64_t begin, int64_t end) {                             \
    const softmax_job *job = argument;                                                                        \
    for (; begin < end; begin++) {                                                                            \
      const ELEMENT *x = (const ELEMENT *)job->input + begin * job->length;                                   \
      ELEMENT *out = (ELEMENT *)job->output + begin * job->length;                                            \
      const TF_REAL highest = name##_highest(x, job->length);                                                 \
      const TF_REAL scale = 1 / name##_sum(x, job->length, highest, out);                                     \
      TF_REAL block[LANES];                                                                                   \
      for (int64_t i = 0; i < job->length; i += LANES) {                                                      \
        const int64_t count = job->length - i < LANES ? job->length - i : LANES;                              \
        if (keeps) {                                                                                          \
          convert(block, out + i, count);                                                                     \
          for (int64_t j = 0; j < count; j++) block[j] *= scale;                                              \
        } else {                                                                                              \
          name##_block(x + i, LANES, count, block);                                                           \
          for (int64_t j = 0; j < LANES; j++) block[j] = TF_F(exp)(block[j] - highest) * scale;               \
        }                                                                                                     \
        store(out + i, block, count);                                                                         \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  static void log_softmax_##name##_rows(void *argument, int64_t begin, int64_t end) {                         \
    const softmax_job *job = argument;                                                                        \
    for (; begin < end; begin++) {                                                                            \
      const ELEMENT *x = (const ELEMENT *)job->input + begin * job->length;                                   \
      ELEMENT *out = (ELEMENT *)job->output + begin * job->length;                                            \
      const TF_REAL highest = name##_highest(x, job->length);                                                 \
      const TF_REAL shift = TF_F(log)(name##_sum(x, job->length, highest, 0));                                \
      TF_REAL block[LANES];                                                                                   \
      for (int64_t i = 0; i < job->length; i += LANES) {                                                      \
        const int64_t count = job->length - i < LANES ? job->length - i : LANES;                              \
        convert(block, x + i, count);                                                                         \
        for (int64_t j = 0; j < count; j++) block[j] = block[j] - highest - shift;                            \
        store(out + i, block, count);                                                                         \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  SOFTMAX_KERNEL(softmax_##name)                                                                              \
  SOFTMAX_KERNEL(log_softmax_##name)

/* Parameters: rows, length of each. */
#define SOFTMAX_KERNEL(name)                                                                          \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    softmax_job job = {inputs[0]->data, outputs[0]->data, parameters[1]};                             \
    const int64_t grain = job.length > 0 && job.length < WORK_GRAIN ? WORK_GRAIN / job.length : 1;    \
    context->parallel_for(context, job.length > 0 ? parameters[0] : 0, grain, name##_rows, &job);     \
    return TF_OK;                                                                                     \
  }

#define COPY_ELEMENTS(to, from, count) memcpy(to, from, (size_t)(count) * sizeof(TF_REAL))

#endif
