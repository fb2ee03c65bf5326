/* ArgMax and ArgMin along the middle dimension of [outer, rows, width]: the first row of the best element that is no
 * NaN, 0 where all are.
 *
 * T, TO: dtypes of elements and of positions. BETTER: > or <; INITIAL: the worst element. EACH: a work-item makes a
 * result, else a group does. PARTIAL: the best of each segment of rows and its position are written; JOIN: these are
 * read. */
#include <timberframe/accelerator/language.h>

typedef TF_VALUE(T) accumulator;

#define GROUP_ITEMS 256 /* most work-items of a group */

#ifdef JOIN
#define OPERANDS TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const tf_index *positions, tf_index positions_from
#define POSITION(i, row) positions[positions_from + (i)]
#else
#define OPERANDS TF_GLOBAL const TF_STORAGE(T) *x
#define POSITION(i, row) (row)
#endif

#ifdef PARTIAL
#define RESULTS TF_GLOBAL TF_STORAGE(T) *best_elements, TF_GLOBAL tf_index *out, tf_index out_from
#define PUT(o) TF_STORE(T, best_elements, o, best), out[out_from + (o)] = position
#else
#define RESULTS TF_GLOBAL TF_STORAGE(TO) *out
#define PUT(o) out[o] = (TF_STORAGE(TO))(position < rows_of_all ? position : 0)
#endif

/* rows_of_all is the position of nothing yet. */
#define TAKE(v, p)                                                       \
  {                                                                      \
    const accumulator candidate = v;                                     \
    const tf_index at = p;                                               \
    if (candidate BETTER best || (candidate == best && at < position)) { \
      best = candidate;                                                  \
      position = at;                                                     \
    }                                                                    \
  }

#ifdef EACH

TF_KERNEL tf_argument(OPERANDS, RESULTS, tf_index rows_of_all, tf_index size, tf_index rows, tf_index width) {
  TF_EACH(o, size) {
    const tf_index block = o / width, begin = block * rows * width + o % width;
    accumulator best = INITIAL;
    tf_index position = rows_of_all;
    for (tf_index row = 0; row < rows; row++) {
      const tf_index i = begin + row * width;
      TAKE(TF_LOAD(T, x, i), POSITION(i, row))
    }
    PUT(o);
  }
}

#else

/* Tiles, lanes and segments are those of reduce.h. */
TF_KERNEL tf_argument(OPERANDS, RESULTS, tf_index rows_of_all, tf_index rows, tf_index width, tf_index tiles,
                      tf_index tile, tf_index lanes, tf_index segments, tf_index segment_rows) {
  TF_SHARED accumulator shared[GROUP_ITEMS];
  TF_SHARED tf_index shared_positions[GROUP_ITEMS];
  const tf_index group = (tf_index)tf_group_id(0), first = group % tiles * tile;
  const tf_index segment = group / tiles % segments, block = group / tiles / segments;
  const tf_index item = (tf_index)tf_local_id(0), lane = item / tile, column = first + item - lane * tile;
  const tf_index left = rows - segment * segment_rows, taken = left < segment_rows ? left : segment_rows;
  const tf_index begin = block * rows * width + first + item, row_begin = segment * segment_rows;
  const tf_index row_end = lane < lanes && column < width ? row_begin + taken : 0;
  accumulator best = INITIAL;
  tf_index position = rows_of_all;
  tf_index i = begin + row_begin * width;
  for (tf_index row = row_begin + lane; row < row_end; row += lanes, i += lanes * width) {
    TAKE(TF_LOAD(T, x, i), POSITION(i, row))
  }
  shared[item] = best;
  shared_positions[item] = position;
  for (tf_index parts = lanes; parts > 1; parts = (parts + 1) / 2) {
    const tf_index kept = (parts + 1) / 2;
    tf_barrier();
    if (item < (parts - kept) * tile) {
      TAKE(shared[item + kept * tile], shared_positions[item + kept * tile])
      shared[item] = best;
      shared_positions[item] = position;
    }
  }
  if (item < tile && column < width) PUT((block * segments + segment) * width + column);
}

#endif
