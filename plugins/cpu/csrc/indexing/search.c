/* Where, Unique and its relatives, and ListDiff: outputs whose size only the data tells. */
#include <string.h>

#include "common/table.h"
#include "indexing/index.h"

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll_count(8)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* What is not zero, as coordinates. Writing happens before the test, which spares a branch that nobody can predict; the
 * position written to is inside the output, whose bound is one row for each element. */
#define WHERE(NAME, T, IS_SET)                                                         \
  static int64_t where_##NAME(const tf_tensor *input, int64_t *out) {                  \
    const T *x = input->data;                                                          \
    int64_t rank = input->rank, inner = input->shape[rank - 1], count = 0;             \
    int64_t at[TF_MAX_RANK] = {0};                                                     \
    if (rank == 1) {                                                                   \
      UNROLLED for (int64_t i = 0; i < inner; i++) {                                   \
        out[count] = i;                                                                \
        count += IS_SET;                                                               \
      }                                                                                \
      return count;                                                                    \
    }                                                                                  \
    for (int64_t row = 0; row < input->size / inner; row++, x += inner) {              \
      for (int64_t i = 0; i < inner; i++) {                                            \
        int64_t *to = out + count * rank;                                              \
        for (int64_t d = 0; d < rank - 1; d++) to[d] = at[d];                          \
        to[rank - 1] = i;                                                              \
        count += IS_SET;                                                               \
      }                                                                                \
      for (int64_t d = rank - 2; d >= 0 && ++at[d] == input->shape[d]; d--) at[d] = 0; \
    }                                                                                  \
    return count;                                                                      \
  }

typedef struct pair_float {
  float real, imaginary;
} pair_float;
typedef struct pair_double {
  double real, imaginary;
} pair_double;

WHERE(8, uint8_t, x[i] != 0)
WHERE(16, uint16_t, x[i] != 0)
WHERE(32, uint32_t, x[i] != 0)
WHERE(64, uint64_t, x[i] != 0)
WHERE(half, uint16_t, (x[i] & 0x7fff) != 0)
WHERE(float, float, x[i] != 0)
WHERE(double, double, x[i] != 0)
WHERE(complex64, pair_float, (x[i].real != 0) | (x[i].imaginary != 0))
WHERE(complex128, pair_double, (x[i].real != 0) | (x[i].imaginary != 0))

static int32_t where(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                     const int64_t *parameters) {
  const tf_tensor *x = inputs[0];
  int64_t *out = outputs[0]->data, count = 0;
  (void)context, (void)parameters;
  if (x->size) {
    switch (x->dtype) {
      case TF_BOOL: case TF_INT8: case TF_UINT8: count = where_8(x, out); break;
      case TF_INT16: case TF_UINT16: count = where_16(x, out); break;
      case TF_INT32: case TF_UINT32: count = where_32(x, out); break;
      case TF_INT64: case TF_UINT64: count = where_64(x, out); break;
      case TF_FLOAT16: case TF_BFLOAT16: count = where_half(x, out); break;
      case TF_FLOAT32: count = where_float(x, out); break;
      case TF_FLOAT64: count = where_double(x, out); break;
      case TF_COMPLEX64: count = where_complex64(x, out); break;
      default: count = where_complex128(x, out);
    }
  }
  outputs[0]->shape[0] = count;
  outputs[0]->size = count * x->rank;
  return TF_OK;
}

/* A tensor seen as [outer, count, inner]: `count` items, each of outer * inner elements. */
typedef struct items {
  const tf_tensor *tensor;
  int64_t outer, count, inner;
} items;

/* An element as bits that are equal where the elements are (-0 is 0); returns whether it is a NaN, equal to nothing. */
static inline int element_bits(const tf_tensor *t, int64_t i, uint64_t *bits) {
  uint64_t infinity = 0, sign = 0;
  switch (t->dtype) {
    case TF_FLOAT16: infinity = 0x7c00, sign = 1u << 15; *bits = ((const uint16_t *)t->data)[i]; break;
    case TF_BFLOAT16: infinity = 0x7f80, sign = 1u << 15; *bits = ((const uint16_t *)t->data)[i]; break;
    case TF_FLOAT32: infinity = 0x7f800000, sign = 1u << 31; *bits = ((const uint32_t *)t->data)[i]; break;
    case TF_FLOAT64: infinity = 0x7ffull << 52, sign = 1ull << 63; *bits = ((const uint64_t *)t->data)[i]; break;
    case TF_INT64: case TF_UINT64: *bits = ((const uint64_t *)t->data)[i]; return 0;
    case TF_INT32: case TF_UINT32: *bits = ((const uint32_t *)t->data)[i]; return 0;
    case TF_INT16: case TF_UINT16: *bits = ((const uint16_t *)t->data)[i]; return 0;
    default: *bits = ((const uint8_t *)t->data)[i]; return 0;
  }
  if (*bits == sign) *bits = 0;
  return (*bits & ~sign) > infinity;
}

static inline int64_t element_at(const items *x, int64_t item, int64_t k) {
  return (k / x->inner * x->count + item) * x->inner + k % x->inner;
}

/* Returns whether the item holds a NaN. */
static inline int hash_item(const items *x, int64_t item, uint64_t *hash) {
  uint64_t bits, mixed = 0;
  int nan = 0;
  for (int64_t k = 0; k < x->outer * x->inner; k++) {
    nan |= element_bits(x->tensor, element_at(x, item, k), &bits);
    mixed = (mixed ^ bits) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
  }
  return *hash = mixed, nan;
}

static inline int same_items(const items *x, int64_t i, const items *y, int64_t j) {
  for (int64_t k = 0; k < x->outer * x->inner; k++) {
    uint64_t a, b;
    int nan = element_bits(x->tensor, element_at(x, i, k), &a) | element_bits(y->tensor, element_at(y, j, k), &b);
    if (nan || a != b) return 0;
  }
  return 1;
}

/* The slot of a hash table that holds this item's equal among the items of `known`, or where it belongs. A slot holds
 * the item's number plus one; `mask` is the table's size, a power of two, less one. */
static int64_t find_slot(const int64_t *table, int64_t mask, const items *x, int64_t item, uint64_t hash,
                         const items *known) {
  int64_t slot = (int64_t)hash & mask;
  while (table[slot] && !same_items(x, item, known, table[slot] - 1)) slot = (slot + 1) & mask;
  return slot;
}

static inline void store_index(tf_tensor *t, int64_t i, int64_t value) {
  if (t->dtype == TF_INT64) ((int64_t *)t->data)[i] = value;
  else ((int32_t *)t->data)[i] = (int32_t)value;
}

static inline void count_one(tf_tensor *t, int64_t i) {
  if (t->dtype == TF_INT64) ((int64_t *)t->data)[i]++;
  else ((int32_t *)t->data)[i]++;
}

/* parameters: outer, count, inner, bytes of an element, size of the hash table, axis, outputs. The workspace holds the
 * hash table, the number among the distinct items by item, and the first item of each number. */
static int32_t unique(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                      const int64_t *parameters) {
  items x = {inputs[0], parameters[0], parameters[1], parameters[2]};
  int64_t item = parameters[3], size = parameters[4], axis = parameters[5], distinct = 0;
  tf_tensor *y = outputs[0], *number = outputs[1], *count = parameters[6] > 2 ? outputs[2] : NULL;
  int64_t *table = outputs[parameters[6]]->data, *numbers = table + size, *first = numbers + x.count;
  (void)context;
  memset(table, 0, (size_t)size * sizeof *table);
  for (int64_t i = 0; i < x.count; i++) {
    uint64_t hash;
    int64_t slot = hash_item(&x, i, &hash) ? -1 : find_slot(table, size - 1, &x, i, hash, &x);
    if (slot >= 0 && table[slot]) {
      numbers[i] = numbers[table[slot] - 1];
    } else {
      if (slot >= 0) table[slot] = i + 1;
      if (count) store_index(count, distinct, 0);
      first[distinct] = i;
      numbers[i] = distinct++;
    }
    store_index(number, i, numbers[i]);
    if (count) count_one(count, numbers[i]);
  }
  const char *from = x.tensor->data;
  char *to = y->data;
  size_t bytes = (size_t)(x.inner * item);
  for (int64_t o = 0; o < x.outer; o++) {
    for (int64_t u = 0; u < distinct; u++, to += bytes) {
      memcpy(to, from + (size_t)(o * x.count + first[u]) * bytes, bytes);
    }
  }
  y->shape[axis] = distinct;
  y->size = x.outer * distinct * x.inner;
  if (count) count->shape[0] = count->size = distinct;
  return TF_OK;
}

/* parameters: bytes of an element, size of the hash table, which is the workspace. */
static int32_t list_diff(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                         const int64_t *parameters) {
  items x = {inputs[0], 1, inputs[0]->size, 1}, y = {inputs[1], 1, inputs[1]->size, 1};
  int64_t item = parameters[0], size = parameters[1], *table = outputs[2]->data, kept = 0;
  uint64_t hash;
  (void)context;
  memset(table, 0, (size_t)size * sizeof *table);
  for (int64_t i = 0; i < y.count; i++) {
    if (!hash_item(&y, i, &hash)) table[find_slot(table, size - 1, &y, i, hash, &y)] = i + 1;
  }
  for (int64_t i = 0; i < x.count; i++) {
    int nan = hash_item(&x, i, &hash);
    if (!nan && table[find_slot(table, size - 1, &x, i, hash, &y)]) continue;
    memcpy((char *)outputs[0]->data + kept * item, (const char *)inputs[0]->data + i * item, (size_t)item);
    store_index(outputs[1], kept++, i);
  }
  for (int i = 0; i < 2; i++) outputs[i]->shape[0] = outputs[i]->size = kept;
  return TF_OK;
}

TF_TABLE(indexing_search) = {TF_ENTRY(where), TF_ENTRY(unique), TF_ENTRY(list_diff), TF_END};
