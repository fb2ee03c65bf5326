/* Running sums, products and logsumexps along the middle dimension of [outer, length, width].
 *
 * T, ACCUMULATOR: dtypes of elements and of running values. COMBINE: sum, product or logsumexp; INITIAL: its neutral
 * value. Lines may be cut into segments of `segment` elements: with TOTALS each segment's total is written, which are
 * then scanned themselves, and with CARRIED each segment begins with what came before it. Totals and carries are
 * [outer, segments, width] in the accumulator's dtype. EACH: a work-item takes a segment; else a group does, for a
 * width of 1. The output may be the input. */
#include <timberframe/accelerator/language.h>
#ifdef PRECISION
#include <timberframe/elementwise.h>
#endif

typedef TF_VALUE(ACCUMULATOR) accumulator;

#define GROUP_ITEMS 256 /* of a group */
#define ITEM_ELEMENTS 8
#define TILE (GROUP_ITEMS * ITEM_ELEMENTS)

#define tf_combine_sum(a, b) ((a) + (b))
#define tf_combine_product(a, b) ((a) * (b))
#define tf_combine(a, b) ((accumulator)TF_JOIN2(combine, COMBINE)(a, b))

#ifdef PRECISION
#if PRECISION == 64
#define TF_FUNCTION(name) tf_##name##_f64
#else
#define TF_FUNCTION(name) tf_##name##_f32
#endif
/* log(exp(a) + exp(b)): an infinite maximum is the result, as the difference of two infinities would be NaN. */
static inline accumulator tf_combine_logsumexp(accumulator a, accumulator b) {
  const accumulator high = a > b ? a : b, low = a > b ? b : a;
  if (a != a || b != b) return a + b;
  if (high - high != 0) return high;
  return high + TF_FUNCTION(log1p)(TF_FUNCTION(exp)(low - high));
}
#endif

#ifdef TOTALS
#define RESULTS TF_GLOBAL TF_STORAGE(ACCUMULATOR) *totals
#else
#define RESULTS TF_GLOBAL TF_STORAGE(T) *out
#endif
#ifdef CARRIED
#define OPERANDS TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(ACCUMULATOR) *carries
#define CARRY(o) TF_LOAD(ACCUMULATOR, carries, o)
#else
#define OPERANDS TF_GLOBAL const TF_STORAGE(T) *x
#define CARRY(o) INITIAL
#endif

#ifdef EACH

TF_KERNEL tf_scan(OPERANDS, RESULTS, tf_index size, tf_index length, tf_index width, tf_index segments,
                  tf_index segment, int32_t exclusive, int32_t reverse) {
  TF_EACH(o, size) {
    const tf_index position = o / width, line = position / segments, begin = (position - line * segments) * segment;
    const tf_index end = length - begin < segment ? length : begin + segment;
    const tf_index start = line * length * width + o - position * width;
    accumulator before = CARRY(o);
    for (tf_index k = begin; k < end; k++) {
      const tf_index i = start + (reverse ? length - 1 - k : k) * width;
      const accumulator now = tf_combine(before, (accumulator)TF_LOAD(T, x, i));
#ifndef TOTALS
      TF_STORE(T, out, i, (TF_VALUE(T))(exclusive ? before : now));
#endif
      before = now;
    }
#ifdef TOTALS
    TF_STORE(ACCUMULATOR, totals, o, before);
#endif
  }
}

#else

/* A group takes a tile at a time: each item some neighbouring elements, then the items' totals are scanned in steps of
 * 1, 2, 4 and so on. */
TF_KERNEL tf_scan(OPERANDS, RESULTS, tf_index length, tf_index segments, tf_index segment, int32_t exclusive,
                  int32_t reverse) {
  TF_SHARED accumulator shared[TILE];
  TF_SHARED accumulator sums[GROUP_ITEMS];
  const tf_index group = (tf_index)tf_group_id(0), line = group / segments, begin = (group - line * segments) * segment;
  const tf_index end = length - begin < segment ? length : begin + segment, start = line * length;
  const int32_t item = tf_local_id(0), first = item * ITEM_ELEMENTS;
  accumulator carry = CARRY(group);
  for (tf_index tile = begin; tile < end; tile += TILE) {
    for (int32_t k = item; k < TILE; k += GROUP_ITEMS) {
      const tf_index at = reverse ? length - 1 - tile - k : tile + k;
      shared[k] = tile + k < end ? (accumulator)TF_LOAD(T, x, start + at) : INITIAL;
    }
    tf_barrier();
    accumulator sum = shared[first];
    for (int32_t k = 1; k < ITEM_ELEMENTS; k++) sum = tf_combine(sum, shared[first + k]);
    sums[item] = sum;
    tf_barrier();
    for (int32_t step = 1; step < GROUP_ITEMS; step *= 2) {
      if (item >= step) sum = tf_combine(sums[item - step], sum);
      tf_barrier();
      sums[item] = sum;
      tf_barrier();
    }
#ifndef TOTALS
    accumulator before = item ? tf_combine(carry, sums[item - 1]) : carry;
    for (int32_t k = first; k < first + ITEM_ELEMENTS; k++) {
      const accumulator now = tf_combine(before, shared[k]);
      shared[k] = exclusive ? before : now;
      before = now;
    }
    tf_barrier();
    for (int32_t k = item; k < TILE && tile + k < end; k += GROUP_ITEMS) {
      const tf_index at = reverse ? length - 1 - tile - k : tile + k;
      TF_STORE(T, out, start + at, (TF_VALUE(T))shared[k]);
    }
#endif
    carry = tf_combine(carry, sums[GROUP_ITEMS - 1]);
    tf_barrier();
  }
#ifdef TOTALS
  if (item == 0) TF_STORE(ACCUMULATOR, totals, group, carry);
#endif
}

#endif
