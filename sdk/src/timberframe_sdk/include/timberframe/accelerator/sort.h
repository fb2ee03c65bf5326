/* Stable sorting of keys together with the places that they come from. KEY: uint32 or uint64.
 *
 * A tensor is rows of `size` entries. A kernel of a family brings TF_BLOCK entries of a row into shared memory, sorts
 * them by tf_sort_block and writes them to side 0 of a workspace; tf_merge joins the sorted runs of a row in pairs,
 * from one side to the other, until the row is one run. A workspace holds the keys of both sides, then the places of
 * both.
 *
 * Entries of equal key stay in order. A family for which keys do not tell all defines SORT_TIE(a, b), whether the entry
 * of place a comes before that of place b where the keys are equal, with SORT_PARAMETERS and SORT_ARGUMENTS that are
 * handed through to it (each begins with a comma). */
#ifndef TIMBERFRAME_ACCELERATOR_SORT_H
#define TIMBERFRAME_ACCELERATOR_SORT_H

#include <timberframe/accelerator/language.h>

#ifndef TF_BLOCK
#define TF_BLOCK 1024 /* entries that one work-group sorts */
#endif
#define TF_MERGED 16  /* entries that one work-item merges; divides TF_BLOCK */
#ifndef SORT_TIE
#define SORT_TIE(a, b) 0
#define SORT_PARAMETERS
#define SORT_ARGUMENTS
#endif

typedef TF_VALUE(KEY) tf_key;

/* Keys and places of side 0 or 1 of a workspace for `total` entries. */
#define TF_KEYS(workspace, side, total) ((TF_GLOBAL tf_key *)(workspace) + (side) * (total))
#define TF_PLACES(workspace, side, total) \
  ((TF_GLOBAL tf_index *)((TF_GLOBAL tf_key *)(workspace) + 2 * (total)) + (side) * (total))

/* Whether entry a comes before entry b, which stands behind it if they are equal. */
static inline int tf_before(tf_key key_a, tf_index place_a, tf_key key_b, tf_index place_b SORT_PARAMETERS) {
  return key_a < key_b || (key_a == key_b && SORT_TIE(place_a, place_b));
}

/* Sorts the first `count` of TF_BLOCK entries. keys and positions have room for two blocks, the entries lie in the
 * first; a place is `base` + position. Returns where the sorted entries begin. All work-items of the group must call it
 * after a barrier. */
static inline int32_t tf_sort_block(TF_LOCAL tf_key *keys, TF_LOCAL uint16_t *positions, int32_t count,
                                    tf_index base SORT_PARAMETERS) {
  int32_t from = 0;
  (void)base;
  for (int32_t run = 1; run < count; run *= 2, from = TF_BLOCK - from) {
    TF_LOCAL const tf_key *key = keys + from;
    TF_LOCAL const uint16_t *position = positions + from;
    const int32_t to = TF_BLOCK - from;
    for (int32_t e = tf_local_id(0); e < count; e += tf_local_size(0)) {
      /* an entry's new position is that in its run, and how many of the neighbouring run come before it */
      const int32_t is_right = (e & run) != 0, start = (e & ~(2 * run - 1)) + (is_right ? 0 : run);
      const int32_t length = start >= count ? 0 : count - start < run ? count - start : run;
      const tf_key own = key[e];
      const tf_index place = base + position[e];
      int32_t smaller = 0;
      for (int32_t step = run; step > 0; step /= 2) {
        const int32_t next = smaller + step;
        if (next <= length) {
          const tf_key other = key[start + next - 1];
          const tf_index other_place = base + position[start + next - 1];
          const int counts = is_right ? !tf_before(own, place, other, other_place SORT_ARGUMENTS)
                                      : tf_before(other, other_place, own, place SORT_ARGUMENTS);
          if (counts) smaller = next;
        }
      }
      const int32_t at = to + e - (is_right ? run : 0) + smaller;
      keys[at] = own;
      positions[at] = position[e];
    }
    tf_barrier();
  }
  return from;
}

/* Where `key` with `place` would stand among the first `count` sorted entries: behind those that come before it, and
 * with `behind` behind those equal to it, too. */
static inline tf_index tf_find(TF_GLOBAL const tf_key *keys, TF_GLOBAL const tf_index *places, tf_index count,
                               tf_key key, tf_index place, int behind SORT_PARAMETERS) {
  tf_index low = 0, high = count;
  (void)places, (void)place;
  while (low < high) {
    const tf_index middle = low + (high - low) / 2;
    const int below = behind ? !tf_before(key, place, keys[middle], places[middle] SORT_ARGUMENTS)
                             : tf_before(keys[middle], places[middle], key, place SORT_ARGUMENTS);
    if (below) low = middle + 1;
    else high = middle;
  }
  return low;
}

#endif
