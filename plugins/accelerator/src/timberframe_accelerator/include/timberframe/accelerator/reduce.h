/* Reductions of the middle dimension of [outer, rows, width]; several passes of it make any reduction.
 *
 * NAME: the kernel's. FROM, ACCUMULATOR, TO: dtypes of what is read, of partial results and of what is written.
 * COMBINE: sum, product, maximum or minimum; INITIAL: its neutral value. MAP: same or square, of each element. FINISH:
 * same, mean, integer_mean, half or root_f32, root_f64, root_integer of a result of `count` elements. EACH: a work-item
 * makes a result, else a group.
 *
 * OPERANDS and ELEMENT(i) may be defined to reduce something else than the elements of a tensor: a list of
 * parameters, and element i of [outer, rows, width] made from them; it may use `block` and `column`, its indices in outer
 * and width. */
#include <timberframe/accelerator/language.h>

#ifndef OPERANDS
#define OPERANDS TF_GLOBAL const TF_STORAGE(FROM) *x
#define ELEMENT(i) TF_LOAD(FROM, x, i)
#endif

typedef TF_VALUE(ACCUMULATOR) accumulator;

#define GROUP_ITEMS 256 /* most work-items of a group */

#define tf_combine_sum(a, b) ((a) + (b))
#define tf_combine_product(a, b) ((a) * (b))
#define tf_combine_maximum(a, b) ((b) > (a) || (b) != (b) ? (b) : (a)) /* NaN wins */
#define tf_combine_minimum(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define tf_map_same(v) (v)
#define tf_map_square(v) ((v) * (v))
#define tf_finish_same(v, count) ((TF_VALUE(TO))(v))
#define tf_finish_mean(v, count) ((TF_VALUE(TO))((v) / (accumulator)(count)))
/* Of nothing 0: devices disagree on integers divided by 0, and processors that stand for one end the program. */
#define tf_finish_integer_mean(v, count) ((TF_VALUE(TO))((count) ? (v) / (accumulator)(count) : 0))
#define tf_finish_half(v, count) ((TF_VALUE(TO))((v) / 2))
#define tf_finish_root_f32(v, count) tf_root_f32(v)
#define tf_finish_root_f64(v, count) tf_root_f64(v)
#define tf_finish_root_integer(v, count) \
  ((TF_VALUE(TO))v > 0 ? (TF_VALUE(TO))tf_integer_root((uint64_t)(TF_VALUE(TO))v) : 0)

static inline uint64_t tf_integer_root(uint64_t x) {
#ifdef TF_NO_FLOAT64
  uint64_t root = 0;
  for (int32_t bit = 31; bit >= 0; bit--) {
    const uint64_t larger = root | ((uint64_t)1 << bit);
    if (larger * larger <= x) root = larger;
  }
  return root;
#else
  return (uint64_t)tf_root_f64((double)x);
#endif
}

/* Four partial results at a time hide the latency of `combine`. */
#define TAKE(a, i)                                \
  {                                               \
    const accumulator v = (accumulator)ELEMENT(i); \
    a = TF_JOIN2(combine, COMBINE)(a, TF_JOIN2(map, MAP)(v)); \
  }
#define TAKE_ALL(result, begin, end, step)                                                       \
  accumulator result = INITIAL, a1 = INITIAL, a2 = INITIAL, a3 = INITIAL;                        \
  {                                                                                              \
    tf_index i = begin;                                                                          \
    for (; i + 3 * (step) < (end); i += 4 * (step)) {                                            \
      TAKE(result, i)                                                                            \
      TAKE(a1, i + (step))                                                                       \
      TAKE(a2, i + 2 * (step))                                                                   \
      TAKE(a3, i + 3 * (step))                                                                   \
    }                                                                                            \
    for (; i < (end); i += (step)) TAKE(result, i)                                               \
    result = TF_JOIN2(combine, COMBINE)(result, a1);                                             \
    a2 = TF_JOIN2(combine, COMBINE)(a2, a3);                                                     \
    result = TF_JOIN2(combine, COMBINE)(result, a2);                                             \
  }

#ifdef EACH

/* Reads from element `from` on and writes `size` results from element `to` on. */
TF_KERNEL NAME(OPERANDS, TF_GLOBAL TF_STORAGE(TO) *out, tf_index from, tf_index to, int64_t count, tf_index size,
                    tf_index rows, tf_index width) {
  TF_EACH(o, size) {
    const tf_index block = o / width, column = o - block * width;
    const tf_index begin = from + block * rows * width + column;
    TAKE_ALL(a, begin, begin + rows * width, width)
    TF_STORE(TO, out, to + o, TF_JOIN2(finish, FINISH)(a, count));
  }
}

#else

/* A group makes `tile` neighbouring results of a segment of rows: [outer, segments, width] is written. Where it takes
 * several rows at a time (lanes), tile is width and there is one tile, so that the group's elements are neighbours. */
TF_KERNEL NAME(OPERANDS, TF_GLOBAL TF_STORAGE(TO) *out, tf_index from, tf_index to, int64_t count, tf_index rows,
                    tf_index width, tf_index tiles, tf_index tile, tf_index lanes, tf_index segments,
                    tf_index segment_rows) {
  TF_SHARED accumulator shared[GROUP_ITEMS];
  const tf_index position = (tf_index)tf_group_id(0), first = position % tiles * tile;
  const tf_index segment = position / tiles % segments, block = position / tiles / segments;
  const tf_index left = rows - segment * segment_rows, taken = left < segment_rows ? left : segment_rows;
  const tf_index item = (tf_index)tf_local_id(0), column = first + (lanes > 1 ? item % tile : item);
  const tf_index begin = from + (block * rows + segment * segment_rows) * width + first;
  const tf_index end = item < lanes * tile && column < width ? begin + taken * width : 0;
  TAKE_ALL(a, begin + item, end, lanes * width)
  shared[item] = a;
  for (tf_index parts = lanes; parts > 1; parts = (parts + 1) / 2) {
    const tf_index kept = (parts + 1) / 2;
    tf_barrier();
    if (item < (parts - kept) * tile) {
      const accumulator other = shared[item + kept * tile];
      a = TF_JOIN2(combine, COMBINE)(a, other);
      shared[item] = a;
    }
  }
  if (item < tile && column < width) {
    TF_STORE(TO, out, to + (block * segments + segment) * width + column, TF_JOIN2(finish, FINISH)(a, count));
  }
}

#endif
