/* TopK, NthElement and InTopK.
 *
 * A heap keeps the best elements of a row seen so far, the worst of them at its root. Elements are compared as integers
 * in their order: NaN above all numbers, -0 equal to 0; of equal ones the lower position is better. */
#include <math.h>
#include <string.h>

#include "common/table.h"
#include "indexing/index.h"

#define SERIAL_VALUES 16384 /* values worth a thread */
#define FEW 64              /* elements below which a heap sorts faster than passes over their bytes */

typedef struct entry {
  int64_t key, index;
} entry;

static inline int worse(entry a, entry b) { return a.key < b.key || (a.key == b.key && a.index > b.index); }

/* Puts `moving` into the heap of `count` entries, in which `hole` is free: that sinks to a leaf, then `moving` rises.
 * These steps, and when the heap is built, show in the order of results that need not be sorted; they are what the C++
 * library does that TensorFlow is built with. */
static void settle(entry *heap, int64_t hole, int64_t count, entry moving) {
  int64_t top = hole, child = hole;
  while (child < (count - 1) / 2) {
    child = 2 * (child + 1);
    if (!worse(heap[child], heap[child - 1])) child--;
    heap[hole] = heap[child];
    hole = child;
  }
  if (count % 2 == 0 && child == (count - 2) / 2) {
    child = 2 * child + 1;
    heap[hole] = heap[child];
    hole = child;
  }
  for (; hole > top && worse(moving, heap[(hole - 1) / 2]); hole = (hole - 1) / 2) heap[hole] = heap[(hole - 1) / 2];
  heap[hole] = moving;
}

static void build_heap(entry *heap, int64_t count) {
  for (int64_t i = (count - 2) / 2; i >= 0; i--) settle(heap, i, count, heap[i]);
}

/* Best first. */
static void sort_heap(entry *heap, int64_t count) {
  build_heap(heap, count);
  for (int64_t last = count - 1; last > 0; last--) {
    entry worst = heap[0];
    settle(heap, 0, last, heap[last]);
    heap[last] = worst;
  }
}

/* Sorts a whole row, best first: by each byte of the keys, from the lowest, if that changes anything. */
static void sort_entries(entry *entries, entry *spare, int64_t count) {
  int64_t counts[8][256] = {{0}};
  for (int64_t i = 0; i < count; i++) {
    uint64_t digits = ~((uint64_t)entries[i].key ^ 1ull << 63); /* rises where keys fall */
    for (int b = 0; b < 8; b++) counts[b][digits >> 8 * b & 255]++;
  }
  entry *from = entries, *to = spare;
  for (int b = 0; b < 8; b++) {
    uint64_t first = ~((uint64_t)from[0].key ^ 1ull << 63) >> 8 * b & 255;
    if (counts[b][first] == count) continue;
    for (int64_t digit = 0, at = 0; digit < 256; digit++) {
      int64_t many = counts[b][digit];
      counts[b][digit] = at;
      at += many;
    }
    for (int64_t i = 0; i < count; i++) {
      to[counts[b][~((uint64_t)from[i].key ^ 1ull << 63) >> 8 * b & 255]++] = from[i];
    }
    entry *other = from;
    from = to;
    to = other;
  }
  if (from != entries) memcpy(entries, from, (size_t)count * sizeof *entries);
}

/* Leaves the k best of a row in heap[0, k), which has room for one more. */
#define KEEP(NAME, T, KEY)                                                          \
  static void keep_##NAME(const void *data, int64_t size, int64_t k, entry *heap) { \
    const T *x = data;                                                              \
    for (int64_t i = 0; i < size; i++) {                                            \
      int64_t key = KEY;                                                            \
      if (i <= k) {                                                                 \
        heap[i] = (entry){key, i};                                                  \
        if (i == k) {                                                               \
          build_heap(heap, k + 1);                                                  \
          settle(heap, 0, k, heap[k]);                                              \
        }                                                                           \
      } else if (key > heap[0].key) {                                               \
        settle(heap, 0, k, (entry){key, i});                                        \
      }                                                                             \
    }                                                                               \
  }
/* A float's bits, seen as an integer, are its magnitude with the sign in front. */
#define FLOAT_KEY(LOWEST, INFINITE) \
  ((x[i] & ~LOWEST) > INFINITE ? INT64_MAX : x[i] < 0 ? LOWEST - (int64_t)x[i] : (int64_t)x[i])
#define FIRST_BIT (-0x7fffffffffffffff - 1)

KEEP(int8, int8_t, x[i])
KEEP(int16, int16_t, x[i])
KEEP(int32, int32_t, x[i])
KEEP(int64, int64_t, x[i])
KEEP(uint8, uint8_t, x[i])
KEEP(uint16, uint16_t, x[i])
KEEP(uint32, uint32_t, x[i])
KEEP(uint64, uint64_t, (int64_t)(x[i] ^ 1ull << 63))
KEEP(float16, int16_t, FLOAT_KEY((int64_t)INT16_MIN, 0x7c00))
KEEP(bfloat16, int16_t, FLOAT_KEY((int64_t)INT16_MIN, 0x7f80))
KEEP(float32, int32_t, FLOAT_KEY((int64_t)INT32_MIN, 0x7f800000))
KEEP(float64, int64_t, FLOAT_KEY(FIRST_BIT, 0x7ff0000000000000))

typedef void keep(const void *, int64_t, int64_t, entry *);

static keep *choose_keep(int32_t dtype) {
  switch (dtype) {
    case TF_INT8: return keep_int8;
    case TF_INT16: return keep_int16;
    case TF_INT32: return keep_int32;
    case TF_INT64: return keep_int64;
    case TF_UINT8: return keep_uint8;
    case TF_UINT16: return keep_uint16;
    case TF_UINT32: return keep_uint32;
    case TF_UINT64: return keep_uint64;
    case TF_FLOAT16: return keep_float16;
    case TF_BFLOAT16: return keep_bfloat16;
    case TF_FLOAT32: return keep_float32;
    default: return keep_float64;
  }
}

typedef struct top_job {
  const tf_tensor *input;
  tf_tensor *values, *indices; /* no indices: the k-th largest value alone */
  entry *heaps;
  keep *keep;
  int64_t size, k, item, sorted;
} top_job;

static void store_position(tf_tensor *t, int64_t i, int64_t value) {
  switch (t->dtype) {
    case TF_INT64: ((int64_t *)t->data)[i] = value; break;
    case TF_INT16: ((int16_t *)t->data)[i] = (int16_t)value; break;
    default: ((int32_t *)t->data)[i] = (int32_t)value;
  }
}

static void top_rows(void *argument, int64_t begin, int64_t end) {
  const top_job *job = argument;
  for (int64_t row = begin; row < end; row++) {
    const char *from = (const char *)job->input->data + row * job->size * job->item;
    entry *heap = job->heaps + row * (job->k + 1) * (job->k == job->size ? 2 : 1);
    job->keep(from, job->size, job->k, heap);
    if (!job->indices) {
      if (job->k == job->size) build_heap(heap, job->k);
      memcpy((char *)job->values->data + row * job->item, from + heap[0].index * job->item, (size_t)job->item);
      continue;
    }
    if (job->k == job->size && job->k >= FEW) sort_entries(heap, heap + job->k + 1, job->k);
    else if (job->sorted || job->k == job->size) sort_heap(heap, job->k);
    char *to = (char *)job->values->data + row * job->k * job->item;
    for (int64_t i = 0; i < job->k; i++) {
      memcpy(to + i * job->item, from + heap[i].index * job->item, (size_t)job->item);
      store_position(job->indices, row * job->k + i, heap[i].index);
    }
  }
}

static int32_t find_top(tf_context *context, top_job *job) {
  job->keep = choose_keep(job->input->dtype);
  if (!job->values->size) return TF_OK;
  context->parallel_for(context, job->input->size / job->size, 1 + SERIAL_VALUES / job->size, top_rows, job);
  return TF_OK;
}

/* parameters: elements of a row, k, bytes of an element, sorted. The workspace holds k + 1 entries for each
 * row, twice that where k is the whole row. */
static int32_t top_k(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                     const int64_t *parameters) {
  entry *heaps = outputs[2]->data;
  top_job job = {inputs[0], outputs[0], outputs[1], heaps, NULL, parameters[0], parameters[1], parameters[2],
                 parameters[3]};
  return find_top(context, &job);
}

static int32_t nth_element(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                           const int64_t *parameters) {
  top_job job = {inputs[0], outputs[0], NULL, outputs[1]->data, NULL, parameters[0], parameters[1], parameters[2],
                 parameters[3]};
  return find_top(context, &job);
}

/* parameters: k, used when there is no third input. */
static int32_t in_top_k(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                        const int64_t *parameters) {
  int64_t classes = inputs[0]->shape[1], k = parameters[1] ? load_index(inputs[2], 0) : parameters[0];
  const float *row = inputs[0]->data;
  uint8_t *out = outputs[0]->data;
  (void)context;
  for (int64_t i = 0; i < outputs[0]->size; i++, row += classes) {
    int64_t target = load_index(inputs[1], i), above = 0;
    int known = target >= 0 && target < classes;
    for (int64_t c = 0; known && c < classes; c++) {
      known = isfinite(row[c]);
      above += row[c] > row[target];
    }
    out[i] = known && above < k;
  }
  return TF_OK;
}

TF_TABLE(indexing_top) = {TF_ENTRY(top_k), TF_ENTRY(nth_element), TF_ENTRY(in_top_k), TF_END};
