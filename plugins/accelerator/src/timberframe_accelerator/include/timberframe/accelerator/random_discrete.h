/* Shuffled rows, and the key and counter of a pair of seeds. */
#include <timberframe/accelerator/random_origin.h>

/* Fisher and Yates's exchanges, all at the same time. The ith brings the row at place partners[i] >= i to place i, where
 * it stays, and the row at place i to partners[i]. Which row was at place partners[i]? The last exchange before i with
 * this partner brought it there from its own place, and to that another one before it, and so on: two steps on average.
 * The exchanges with the same partner are a list that begins at heads[partner]. These tables lie after the order. */
#define TF_PARTNERS(order, rows) ((order) + (int64_t)(rows))
#define TF_HEADS(order, rows) ((order) + 2 * (int64_t)(rows))
#define TF_NEXT(order, rows) ((order) + 3 * (int64_t)(rows))

/* Each exchange is with itself where there is no generator: the other kernels run nevertheless. */
TF_SCALAR_KERNEL tf_draw_partners(TF_ORIGIN, TF_GLOBAL int32_t *order, int32_t rows) {
  philox g;
  const int drawn = tf_open(seeds, counter, algorithm, status, node, key, low, high, &g);
  TF_EACH(block, rows / 4 + 1) {
    uint32_t x[4];
    if (drawn) philox_block(&g, (uint64_t)block, x);
    for (int32_t k = 0; k < 4 && 4 * block + k < rows; k++) {
      const int32_t i = 4 * block + k;
      TF_HEADS(order, rows)[i] = -1;
      TF_PARTNERS(order, rows)[i] = drawn && i < rows - 1 ? i + (int32_t)(x[k] % (uint32_t)(rows - i)) : i;
    }
  }
}

TF_SCALAR_KERNEL tf_list_exchanges(TF_GLOBAL int32_t *order, int32_t rows) {
  TF_EACH(i, rows) {
    const int32_t partner = TF_PARTNERS(order, rows)[i];
    if (partner != i) TF_NEXT(order, rows)[i] = tf_atomic_exchange_int32(TF_HEADS(order, rows) + partner, i);
  }
}

/* The last exchange before one that has this partner, or -1. A list has some tens of exchanges at most. */
static inline int32_t tf_last_exchange(TF_GLOBAL const int32_t *order, int32_t rows, int32_t partner, int32_t before) {
  int32_t last = -1;
  for (int32_t i = TF_HEADS(order, rows)[partner]; i >= 0; i = TF_NEXT(order, rows)[i]) {
    if (i < before && i > last) last = i;
  }
  return last;
}

TF_SCALAR_KERNEL tf_follow_exchanges(TF_GLOBAL int32_t *order, int32_t rows) {
  TF_EACH(i, rows) {
    int32_t place = TF_PARTNERS(order, rows)[i], exchange = i;
    while ((exchange = tf_last_exchange(order, rows, place, exchange)) >= 0) place = exchange;
    order[i] = place;
  }
}

TF_KERNEL tf_key_counter(TF_ORIGIN, TF_GLOBAL uint64_t *out_key, TF_GLOBAL uint64_t *out_counter,
                         TF_GLOBAL int32_t *out_algorithm, int32_t tells_algorithm) {
  TF_OPEN
  if (tf_global_id(0) != 0) return;
  out_key[0] = g.key;
  out_counter[0] = g.low;
  out_counter[1] = g.high;
  if (tells_algorithm) out_algorithm[0] = PHILOX_ALGORITHM;
}
