/* Categories, shuffled rows, and the key and counter of a pair of seeds. */
#include <math.h>

#include "common/half.h"
#include "fill.h"

/* 32-bit numbers one after another, a chunk of blocks made at a time. */
typedef struct sequence {
  philox generator;
  uint64_t block;
  int taken;
  uint32_t numbers[CHUNK_NUMBERS];
} sequence;

static inline uint32_t next_number(sequence *s) {
  if (s->taken == CHUNK_NUMBERS) {
    philox_blocks(&s->generator, s->block, 1, CHUNK_BLOCKS, s->numbers);
    s->block += CHUNK_BLOCKS;
    s->taken = 0;
  }
  return s->numbers[s->taken++];
}

/* Sums of exp(logits - largest) from the first class on; what is not finite adds nothing. */
static double running_sums(const tf_tensor *logits, int64_t row, int64_t classes, double *sums) {
  double largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < classes; j++) {
    const int64_t i = row * classes + j;
    switch (logits->dtype) {
      case TF_FLOAT32: sums[j] = (double)((const float *)logits->data)[i]; break;
      case TF_FLOAT16: sums[j] = (double)tf_float32_from_float16(((const tf_float16 *)logits->data)[i]); break;
      case TF_BFLOAT16: sums[j] = (double)tf_float32_from_bfloat16(((const tf_bfloat16 *)logits->data)[i]); break;
      default: sums[j] = ((const double *)logits->data)[i]; break;
    }
    if (isfinite(sums[j]) && sums[j] > largest) largest = sums[j];
  }
  for (int64_t j = 0; j < classes; j++) {
    total += isfinite(sums[j]) ? exp(sums[j] - largest) : 0;
    sums[j] = total;
  }
  return total;
}

/* The first class whose sum is above `point`; `classes` if none is. */
static inline int64_t category(const double *sums, int64_t classes, double point) {
  int64_t low = 0, high = classes;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (point < sums[middle]) high = middle;
    else low = middle + 1;
  }
  return low;
}

typedef struct category_job {
  philox generator;
  const tf_tensor *logits;
  tf_tensor *out;
  double *sums; /* of each lane */
  int64_t rows, classes, samples, lanes;
} category_job;

/* A lane takes every lanes-th row. */
static void category_range(void *argument, int64_t begin, int64_t end) {
  const category_job *job = argument;
  for (int64_t lane = begin; lane < end; lane++) {
    double *sums = job->sums + lane * job->classes;
    for (int64_t row = lane; row < job->rows; row += job->lanes) {
      const double total = running_sums(job->logits, row, job->classes, sums);
      for (int64_t i = row * job->samples; i < (row + 1) * job->samples; i++) {
        uint32_t x[4];
        philox_block(&job->generator, (uint64_t)i / 2, x);
        const int64_t found = category(sums, job->classes, uniform_float64(x[i % 2 * 2], x[i % 2 * 2 + 1]) * total);
        if (job->out->dtype == TF_INT32) ((int32_t *)job->out->data)[i] = (int32_t)found;
        else ((int64_t *)job->out->data)[i] = found;
      }
    }
  }
}

/* parameters after those of the stream: rows, classes, samples, lanes. The workspace holds `classes` doubles a
 * lane. */
static int32_t random_categories(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                 const int64_t *parameters) {
  const int64_t *own = parameters + PHILOX_PARAMETERS;
  category_job job = {{0, 0, 0}, inputs[0], outputs[0], outputs[1]->data, own[0], own[1], own[2], own[3]};
  const int32_t code = philox_open(context, inputs, parameters, &job.generator);
  if (code || outputs[0]->size == 0) return code;
  const int64_t cost = job.rows / job.lanes * (32 * job.classes + 64 * job.samples);
  context->parallel_for(context, job.lanes, cost < 1 << 17 ? job.lanes : 1, category_range, &job);
  return TF_OK;
}

#define SWAP(type)                                                                                                 \
  for (int64_t i = 0; i < rows - 1; i++) {                                                                         \
    type *items = data;                                                                                            \
    const int64_t j = i + next_number(&numbers) % (uint32_t)(rows - i);                                            \
    const type kept = items[i];                                                                                    \
    items[i] = items[j];                                                                                           \
    items[j] = kept;                                                                                               \
  }

typedef struct wide_item {
  uint64_t parts[2];
} wide_item;

/* Each position swaps with itself or a later one. */
static void shuffle(const philox *g, void *data, int64_t rows, int64_t bytes) {
  sequence numbers = {.generator = *g, .taken = CHUNK_NUMBERS};
  switch (bytes) {
    case 1: SWAP(uint8_t) break;
    case 2: SWAP(uint16_t) break;
    case 4: SWAP(uint32_t) break;
    case 8: SWAP(uint64_t) break;
    default: SWAP(wide_item) break;
  }
}

/* parameters after those of the stream: rows, bytes of a row, bytes of an element where rows are elements (else 0: the
 * workspace holds an int64 for each row). */
static int32_t random_shuffle(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                              const int64_t *parameters) {
  const int64_t *own = parameters + PHILOX_PARAMETERS, rows = own[0], bytes = own[1];
  const char *in = inputs[0]->data;
  char *out = outputs[0]->data;
  philox g;
  const int32_t code = philox_open(context, inputs, parameters, &g);
  if (code) return code;
  if (rows <= 1 || own[2]) {
    if (outputs[0]->size) memcpy(out, in, (size_t)(rows * bytes));
    if (rows > 1) shuffle(&g, out, rows, own[2]);
    return TF_OK;
  }
  int64_t *order = outputs[1]->data;
  for (int64_t i = 0; i < rows; i++) order[i] = i;
  shuffle(&g, order, rows, sizeof *order);
  for (int64_t i = 0; i < rows; i++) memcpy(out + i * bytes, in + order[i] * bytes, (size_t)bytes);
  return TF_OK;
}

/* Outputs: key, counter and, where asked for, the algorithm. parameters: those of the stream, outputs. */
static int32_t random_key_counter(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                  const int64_t *parameters) {
  philox g;
  const int32_t code = philox_open(context, inputs, parameters, &g);
  if (code) return code;
  uint64_t *counter = outputs[1]->data;
  *(uint64_t *)outputs[0]->data = g.key;
  counter[0] = g.low;
  counter[1] = g.high;
  if (parameters[PHILOX_PARAMETERS] > 2) *(int32_t *)outputs[2]->data = PHILOX_ALGORITHM;
  return TF_OK;
}

static int32_t random_algorithm(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                const int64_t *parameters) {
  (void)context, (void)inputs, (void)parameters;
  *(int32_t *)outputs[0]->data = PHILOX_ALGORITHM;
  return TF_OK;
}

TF_TABLE(random_discrete) = {
  TF_ENTRY(random_categories), TF_ENTRY(random_shuffle), TF_ENTRY(random_key_counter), TF_ENTRY(random_algorithm),
  TF_END,
};
