/* Division by numbers that are known before the launch, as a multiplication where indices have 32 bits. */
#ifndef TIMBERFRAME_ACCELERATOR_DIVISION_H
#define TIMBERFRAME_ACCELERATOR_DIVISION_H

#include <timberframe/accelerator/language.h>

/* n / divisor for n >= 0. For 32-bit indices with s = ceil(log2(divisor)), multiplier is 2^(31 + s) / divisor + 1 as the
 * bits of an int32_t and shift is 31 + s: exact for n below 2^31, since multiplier * divisor exceeds 2^(31 + s) by at
 * most 2^s. */
static inline tf_index tf_quotient(tf_index n, tf_index divisor, tf_index multiplier, tf_index shift) {
  if (sizeof(tf_index) == 8) return n / divisor;
  return (tf_index)(((uint64_t)(uint32_t)n * (uint64_t)(uint32_t)multiplier) >> (uint32_t)shift);
}

/* A kernel's parameters for a number that it divides by, and the quotient by that. */
#define TF_DIVISOR(name) tf_index name, tf_index name##_multiplier, tf_index name##_shift
#define TF_QUOTIENT(n, name) tf_quotient(n, name, name##_multiplier, name##_shift)

#endif
