/* The elements that are not among sorted others. BITS, KEY: those of items.h; OUT_INDEX: dtype of the positions. */
#include <timberframe/accelerator/items.h>

/* Side `side` of the workspace holds the others in order. */
static inline int tf_is_among(TF_GLOBAL uint8_t *workspace, tf_index side, tf_index others, tf_bits bits,
                              TF_ORDER_PARAMETERS) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, others);
  const tf_bits order = tf_order(bits, TF_ORDER_ARGUMENTS);
  if (tf_unordered(order, order_infinity)) return 0;
  const tf_index at = tf_find(keys, TF_POSITIONS(workspace, side, others), others, (tf_key)order, 0, 0);
  return at < others && keys[at] == (tf_key)order;
}

#define COMPACT_PARAMETERS                                                                                        \
  TF_GLOBAL const tf_bits *x, TF_GLOBAL tf_bits *out, TF_GLOBAL TF_STORAGE(OUT_INDEX) *positions,                 \
      TF_GLOBAL uint8_t *workspace, tf_index side, tf_index others, TF_ORDER_PARAMETERS,
#define COMPACT_KEEPS(i) !tf_is_among(workspace, side, others, x[i], TF_ORDER_ARGUMENTS)
#define COMPACT_EMIT(at, i)                          \
  do {                                               \
    out[at] = x[i];                                  \
    positions[at] = (TF_STORAGE(OUT_INDEX))(i);      \
  } while (0)
#include <timberframe/accelerator/compact.h>
