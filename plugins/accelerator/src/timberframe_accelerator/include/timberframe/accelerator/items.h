/* Items of a tensor [outer, count, inner]: item i is its slice [:, i, :]. BITS: unsigned integer as wide as an element;
 * KEY: dtype of the keys; ITEMS: defined where an item has not one element.
 *
 * The key of an item is the order of its first element, and ties are broken by the others. */
#ifndef TIMBERFRAME_ACCELERATOR_ITEMS_H
#define TIMBERFRAME_ACCELERATOR_ITEMS_H

#include <timberframe/accelerator/order.h>

/* Element e of an item, in order. */
static inline tf_bits tf_item_element(TF_GLOBAL const tf_bits *items, tf_index item, tf_index e, tf_index item_count,
                                      tf_index item_inner, TF_ORDER_PARAMETERS) {
#ifdef ITEMS
  const tf_index outer = e / item_inner;
  return tf_order(items[(outer * item_count + item) * item_inner + e - outer * item_inner], TF_ORDER_ARGUMENTS);
#else
  (void)e, (void)item_count, (void)item_inner;
  return tf_order(items[item], TF_ORDER_ARGUMENTS);
#endif
}

#ifdef ITEMS
/* Whether the elements of item a come before those of item b, after the first ones, which are equal. */
static inline int tf_item_before(TF_GLOBAL const tf_bits *items, tf_index a, tf_index b, tf_index item_count,
                                 tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  for (tf_index e = 1; e < item_elements; e++) {
    const tf_bits left = tf_item_element(items, a, e, item_count, item_inner, TF_ORDER_ARGUMENTS);
    const tf_bits right = tf_item_element(items, b, e, item_count, item_inner, TF_ORDER_ARGUMENTS);
    if (left != right) return left < right;
  }
  return 0;
}

#define SORT_TIE(a, b) tf_item_before(items, a, b, item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS)
#define SORT_PARAMETERS \
  , TF_GLOBAL const tf_bits *items, tf_index item_count, tf_index item_inner, tf_index item_elements, \
      TF_ORDER_PARAMETERS
#define SORT_ARGUMENTS , items, item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS
#endif
#include <timberframe/accelerator/sort.h>

static inline tf_key tf_item_key(TF_GLOBAL const tf_bits *items, tf_index item, tf_index item_count,
                                 tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  return item_elements ? (tf_key)tf_item_element(items, item, 0, item_count, item_inner, TF_ORDER_ARGUMENTS) : 0;
}

/* Whether an item holds a NaN, and so equals nothing. */
static inline int tf_item_unordered(TF_GLOBAL const tf_bits *items, tf_index item, tf_index item_count,
                                    tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  for (tf_index e = 0; e < item_elements; e++) {
    const tf_bits order = tf_item_element(items, item, e, item_count, item_inner, TF_ORDER_ARGUMENTS);
    if (tf_unordered(order, order_infinity)) return 1;
  }
  return 0;
}

#endif
