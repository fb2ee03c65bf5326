/* Stable sorting of keys together with the positions that they come from. KEY: uint32 or uint64.
 *
 * A tensor is rows of `size` entries. A kernel of a family brings TF_BLOCK entries of a row into shared memory, sorts
 * them by tf_sort_block and writes them to side 0 of a workspace; tf_merge joins the sorted runs of a row in pairs,
 * from one side to the other, until the row is one run. A workspace holds the keys of both sides, then the positions of
 * both.
 *
 * Entries of equal key stay in order. A family for which keys do not tell all defines SORT_TIE(a, b), whether the entry
 * at position a comes before that at position b where keys are equal, with SORT_PARAMETERS and SORT_ARGUMENTS that are
 * handed through to it (each begins with a comma). */
#ifndef TIMBERFRAME_ACCELERATOR_SORT_H
#define TIMBERFRAME_ACCELERATOR_SORT_H

#include <timberframe/accelerator/language.h>

#ifndef TF_BLOCK
#define TF_BLOCK 1024 /* entries that one work-group sorts, a power of two */
#endif
#ifndef TF_CHUNK
#define TF_CHUNK 8 /* those of them that one work-item takes at a time, a power of two */
#endif
#define TF_MERGED 16 /* entries that one work-item merges in global memory; divides TF_BLOCK */
#ifndef SORT_TIE
#define SORT_TIE(a, b) 0
#define SORT_PARAMETERS
#define SORT_ARGUMENTS
#endif

typedef TF_VALUE(KEY) tf_key;

/* Keys and positions of side 0 or 1 of a workspace for `total` entries. */
#define TF_KEYS(workspace, side, total) ((TF_GLOBAL tf_key *)(workspace) + (side) * (total))
#define TF_POSITIONS(workspace, side, total) \
  ((TF_GLOBAL tf_index *)((TF_GLOBAL tf_key *)(workspace) + 2 * (total)) + (side) * (total))

/* Whether entry a comes before entry b, which comes after it if they are equal. */
static inline int tf_before(tf_key key_a, tf_index position_a, tf_key key_b, tf_index position_b SORT_PARAMETERS) {
  return key_a < key_b || (key_a == key_b && SORT_TIE(position_a, position_b));
}

/* Joins two sorted runs in shared memory, [left, right) and [right, right_end), as far as the entries [first, end) of
 * the result, which go to `to_keys` and `to_positions` at these positions. */
TF_INLINE void tf_merge_shared(TF_LOCAL const tf_key *keys, TF_LOCAL const uint16_t *positions,
                               TF_LOCAL tf_key *to_keys, TF_LOCAL uint16_t *to_positions, int32_t left,
                               int32_t right, int32_t right_end, int32_t first, int32_t end,
                               tf_index base SORT_PARAMETERS) {
  const int32_t before = first - left;
  int32_t low = before > right_end - right ? before - (right_end - right) : 0;
  int32_t high = before < right - left ? before : right - left;
  (void)base;
  while (low < high) {
    const int32_t middle = (low + high) / 2, other = right + before - 1 - middle, own = left + middle;
    if (tf_before(keys[other], base + positions[other], keys[own], base + positions[own] SORT_ARGUMENTS)) high = middle;
    else low = middle + 1;
  }
  int32_t i = left + low, j = right + before - low;
  for (int32_t k = first; k < end; k++) {
    const int from_right = i == right || (j < right_end && tf_before(keys[j], base + positions[j], keys[i],
                                                                     base + positions[i] SORT_ARGUMENTS));
    const int32_t from = from_right ? j : i;
    to_keys[k] = keys[from];
    to_positions[k] = positions[from];
    if (from_right) j++;
    else i++;
  }
}

/* Sorts the first `count` of TF_BLOCK entries. keys and positions have room for two blocks, the entries lie in the
 * first; positions count from `base`. Returns where the sorted entries begin. All work-items of the group must call it
 * after a barrier. */
TF_INLINE int32_t tf_sort_block(TF_LOCAL tf_key *keys, TF_LOCAL uint16_t *positions, int32_t count,
                                tf_index base SORT_PARAMETERS) {
  int32_t from = 0;
  (void)base;
  for (int32_t first = tf_local_id(0) * TF_CHUNK; first < count; first += tf_local_size(0) * TF_CHUNK) {
    for (int32_t e = first + 1; e < first + TF_CHUNK && e < count; e++) {
      const tf_key key = keys[e];
      const uint16_t position = positions[e];
      int32_t to = e;
      while (to > first && tf_before(key, base + position, keys[to - 1], base + positions[to - 1] SORT_ARGUMENTS)) {
        keys[to] = keys[to - 1];
        positions[to] = positions[to - 1];
        to--;
      }
      keys[to] = key;
      positions[to] = position;
    }
  }
  tf_barrier();
  for (int32_t run = TF_CHUNK; run < count; run *= 2, from = TF_BLOCK - from) {
    const int32_t to = TF_BLOCK - from;
    for (int32_t first = tf_local_id(0) * TF_CHUNK; first < count; first += tf_local_size(0) * TF_CHUNK) {
      const int32_t left = first & ~(2 * run - 1), right = left + run < count ? left + run : count;
      tf_merge_shared(keys + from, positions + from, keys + to, positions + to, left, right,
                      right + run < count ? right + run : count, first,
                      first + TF_CHUNK < count ? first + TF_CHUNK : count, base SORT_ARGUMENTS);
    }
    tf_barrier();
  }
  return from;
}

/* Where `key` with `position` would stand among the first `count` sorted entries: after those that come before it, and
 * with `after_equal` after those equal to it, too. */
static inline tf_index tf_find(TF_GLOBAL const tf_key *keys, TF_GLOBAL const tf_index *positions, tf_index count,
                               tf_key key, tf_index position, int after_equal SORT_PARAMETERS) {
  tf_index low = 0, high = count;
  (void)positions, (void)position;
  while (low < high) {
    const tf_index middle = low + (high - low) / 2;
    const int below = after_equal ? !tf_before(key, position, keys[middle], positions[middle] SORT_ARGUMENTS)
                             : tf_before(keys[middle], positions[middle], key, position SORT_ARGUMENTS);
    if (below) low = middle + 1;
    else high = middle;
  }
  return low;
}

#endif
