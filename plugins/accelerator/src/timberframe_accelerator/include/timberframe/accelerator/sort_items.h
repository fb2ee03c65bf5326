/* Items sorted block by block. Macros: those of items.h. */
#include <timberframe/accelerator/items.h>

TF_KERNEL tf_sort_items(TF_GLOBAL const tf_bits *items, TF_GLOBAL uint8_t *workspace, tf_index item_count,
                        tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  TF_SHARED tf_key keys[2 * TF_BLOCK];
  TF_SHARED uint16_t positions[2 * TF_BLOCK];
  const tf_index base = (tf_index)tf_group_id(0) * TF_BLOCK;
  const int32_t here = (int32_t)(item_count - base < TF_BLOCK ? item_count - base : TF_BLOCK);
  for (int32_t e = tf_local_id(0); e < here; e += tf_local_size(0)) {
    keys[e] = tf_item_key(items, base + e, item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS);
    positions[e] = (uint16_t)e;
  }
  tf_barrier();
  const int32_t sorted = tf_sort_block(keys, positions, here, base SORT_ARGUMENTS);
  for (int32_t e = tf_local_id(0); e < here; e += tf_local_size(0)) {
    TF_KEYS(workspace, 0, item_count)[base + e] = keys[sorted + e];
    TF_POSITIONS(workspace, 0, item_count)[base + e] = base + positions[sorted + e];
  }
}
