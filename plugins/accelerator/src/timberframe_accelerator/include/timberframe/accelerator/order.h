/* Elements as unsigned integers of the same order. BITS: unsigned integer as wide as an element.
 *
 * Arguments say how: `order_sign` is the bit that tells negative numbers (0 for unsigned ones), `order_infinity`
 * the bits of infinity (0 for integers). -0 is 0, and NaN comes after all numbers. */
#ifndef TIMBERFRAME_ACCELERATOR_ORDER_H
#define TIMBERFRAME_ACCELERATOR_ORDER_H

#include <timberframe/accelerator/language.h>

typedef TF_STORAGE(BITS) tf_bits;

#define TF_ORDER_PARAMETERS tf_bits order_sign, tf_bits order_infinity
#define TF_ORDER_ARGUMENTS order_sign, order_infinity

static inline tf_bits tf_order(tf_bits bits, TF_ORDER_PARAMETERS) {
  const tf_bits magnitude = (tf_bits)(bits & ~order_sign);
  if (!order_infinity) return (tf_bits)(bits ^ order_sign);
  if (magnitude > order_infinity) return (tf_bits)-1;
  if (!magnitude) return order_sign;
  return (tf_bits)(bits & order_sign ? ~bits : bits | order_sign);
}

/* Whether this is the order of a NaN, which equals nothing. */
static inline int tf_unordered(tf_bits order, tf_bits order_infinity) {
  return order_infinity && order == (tf_bits)-1;
}

#endif
