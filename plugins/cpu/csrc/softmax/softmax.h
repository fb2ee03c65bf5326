/* Softmax and LogSoftmax of rows, in the precision whose names (unary/precision_*.h) are in force.
 *
 * A row is read three times while it lies in the cache: its largest element, the sum of exponentials of the
 * differences to it, the results. The last elements of a row are worked on in a block filled up with one of them (not
 * with -inf: results that underflow are slow). A NaN in the row makes all results NaN by way of the sum. */
#ifndef TIMBERFRAME_CPU_SOFTMAX_H
#define TIMBERFRAME_CPU_SOFTMAX_H

enum { LANES = 64, WORK_GRAIN = 1 << 13 };

typedef struct softmax_job {
  const void *input;
  void *output;
  int64_t length;
} softmax_job;

#define INLINE static inline __attribute__((always_inline))

INLINE TF_REAL fold_highest(TF_REAL *lanes, int64_t width) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; j++) lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];
  }
  return lanes[0];
}

INLINE TF_REAL fold_sum(TF_REAL *lanes, int64_t width) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

/* Only the first `valid` of `count` terms are added. */
INLINE void add_exponentials(int64_t count, int64_t valid, const TF_REAL *x, TF_REAL highest, TF_REAL *out,
                             TF_REAL *sums) {
  for (int64_t j = 0; j < count; j++) {
    const TF_REAL e = TF_F(decaying_exp)(x[j] - highest);
    out[j] = e;
    sums[j] += j < valid ? e : 0;
  }
}

/* The functions of one dtype. convert and store are copies of so many elements to and from TF_REAL; keeps: the output
 * can hold the exponentials themselves until they are scaled. load_part, store_part: of at most SHORT_LANES. `width`
 * is a constant at each call: LANES for long rows, SHORT_LANES for rows shorter than that. */
#define SOFTMAX_ROW(name, ELEMENT, convert, store, load_part, store_part, keeps)                              \
  INLINE void name##_block(const ELEMENT *x, int64_t lanes, int64_t count, TF_REAL *block) {                  \
    load_part(block, x, count);                                                                               \
    for (int64_t j = 0; j < lanes; j++) block[j] = j < count ? block[j] : block[0];                           \
  }                                                                                                           \
  INLINE TF_REAL name##_highest(const ELEMENT *x, int64_t length, int64_t width) {                            \
    TF_REAL lanes[LANES], block[LANES];                                                                       \
    int64_t i = 0;                                                                                            \
    for (int64_t j = 0; j < width; j++) lanes[j] = -TF_INFINITY;                                              \
    for (; i + width <= length; i += width) {                                                                 \
      convert(block, x + i, width);                                                                           \
      for (int64_t j = 0; j < width; j++) lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];               \
    }                                                                                                         \
    for (; i < length; i += SHORT_LANES) {                                                                    \
      name##_block(x + i, SHORT_LANES, length - i < SHORT_LANES ? length - i : SHORT_LANES, block);           \
      for (int64_t j = 0; j < SHORT_LANES; j++) lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];         \
    }                                                                                                         \
    return fold_highest(lanes, width);                                                                        \
  }                                                                                                           \
  /* The sum of exponentials; leaves them in `out`, if that is not NULL, where the output can hold them. */   \
  INLINE TF_REAL name##_sum(const ELEMENT *x, int64_t length, TF_REAL highest, ELEMENT *out, int64_t width) { \
    TF_REAL sums[LANES], block[LANES], terms[LANES];                                                          \
    int64_t i = 0;                                                                                            \
    for (int64_t j = 0; j < width; j++) sums[j] = 0;                                                          \
    for (; i + width <= length; i += width) {                                                                 \
      convert(block, x + i, width);                                                                           \
      add_exponentials(width, width, block, highest, terms, sums);                                            \
      if (keeps && out) store(out + i, terms, width);                                                         \
    }                                                                                                         \
    for (; i < length; i += SHORT_LANES) {                                                                    \
      const int64_t count = length - i < SHORT_LANES ? length - i : SHORT_LANES;                              \
      name##_block(x + i, SHORT_LANES, count, block);                                                         \
      add_exponentials(SHORT_LANES, count, block, highest, terms, sums);                                      \
      if (keeps && out) store_part(out + i, terms, count);                                                    \
    }                                                                                                         \
    return fold_sum(sums, width);                                                                             \
  }                                                                                                           \
  INLINE void name##_softmax_row(const ELEMENT *x, ELEMENT *out, int64_t length, int64_t width) {             \
    const TF_REAL highest = name##_highest(x, length, width);                                                 \
    const TF_REAL scale = 1 / name##_sum(x, length, highest, out, width);                                     \
    if (keeps) {                                                                                              \
      TF_REAL *terms = (void *)out;                                                                           \
      for (int64_t i = 0; i < length; i++) terms[i] *= scale;                                                 \
      return;                                                                                                 \
    }                                                                                                         \
    TF_REAL block[LANES];                                                                                     \
    for (int64_t i = 0; i < length; i += width) {                                                             \
      const int64_t count = length - i < width ? length - i : width;                                          \
      convert(block, x + i, count);                                                                           \
      for (int64_t j = 0; j < count; j++) block[j] = TF_F(decaying_exp)(block[j] - highest) * scale;                   \
      store(out + i, block, count);                                                                           \
    }                                                                                                         \
  }                                                                                                           \
  INLINE void name##_log_softmax_row(const ELEMENT *x, ELEMENT *out, int64_t length, int64_t width) {         \
    const TF_REAL highest = name##_highest(x, length, width);                                                 \
    const TF_REAL shift = TF_F(log)(name##_sum(x, length, highest, NULL, width));                             \
    TF_REAL block[LANES];                                                                                     \
    for (int64_t i = 0; i < length; i += width) {                                                             \
      const int64_t count = length - i < width ? length - i : width;                                          \
      convert(block, x + i, count);                                                                           \
      for (int64_t j = 0; j < count; j++) block[j] = block[j] - highest - shift;                              \
      store(out + i, block, count);                                                                           \
    }                                                                                                         \
  }                                                                                                           \
  SOFTMAX_KERNEL(softmax_##name, ELEMENT, name##_softmax_row, keeps)                                          \
  SOFTMAX_KERNEL(log_softmax_##name, ELEMENT, name##_log_softmax_row, keeps)

/* Parameters: rows, length of each. */
#define SOFTMAX_KERNEL(name, ELEMENT, row, keeps)                                                     \
  static void name##_rows(void *argument, int64_t begin, int64_t end) {                               \
    const softmax_job *job = argument;                                                                \
    for (; begin < end; begin++) {                                                                    \
      const ELEMENT *x = (const ELEMENT *)job->input + begin * job->length;                           \
      ELEMENT *out = (ELEMENT *)job->output + begin * job->length;                                    \
      if (keeps && job->length < LANES) row(x, out, job->length, SHORT_LANES);                        \
      else row(x, out, job->length, LANES);                                                           \
    }                                                                                                 \
  }                                                                                                   \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                      const int64_t *parameters) {                                                    \
    softmax_job job = {inputs[0]->data, outputs[0]->data, parameters[1]};                             \
    const int64_t grain = job.length > 0 && job.length < WORK_GRAIN ? WORK_GRAIN / job.length : 1;    \
    context->parallel_for(context, job.length > 0 ? parameters[0] : 0, grain, name##_rows, &job);     \
    return TF_OK;                                                                                     \
  }

#define COPY_ELEMENTS(to, from, count) memcpy(to, from, (size_t)(count) * sizeof(TF_REAL))

#endif
