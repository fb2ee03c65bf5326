/* Division by numbers that are known before the launch, as a multiplication where places have 32 bits. */
#ifndef TIMBERFRAME_ACCELERATOR_DIVISION_H
#define TIMBERFRAME_ACCELERATOR_DIVISION_H

/* n / divisor for n >= 0. For 32-bit places with s = ceil(log2(divisor)), multiplier is 2^(31 + s) / divisor + 1 as the
 * bits of an int32_t and shift is 31 + s: exact for n below 2^31, since multiplier * divisor exceeds 2^(31 + s) by at
 * most 2^s. */
static inline tf_index tf_quotient(tf_index n, tf_index divisor, tf_index multiplier, tf_index shift) {
  if (sizeof(tf_index) == 8) return n / divisor;
  return (tf_index)(((uint64_t)(uint32_t)n * (uint64_t)(uint32_t)multiplier) >> (uint32_t)shift);
}

#endif
