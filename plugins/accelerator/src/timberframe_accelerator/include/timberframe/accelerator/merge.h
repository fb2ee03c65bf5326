/* One round of merging for sort.h. KEY: dtype of the keys; those of items.h where they tell ties apart. */
#ifdef ITEMS
#include <timberframe/accelerator/items.h>
#else
#include <timberframe/accelerator/sort.h>
#endif

/* Joins the runs of `run` entries of each row in pairs, from side `side` of the workspace to the other. Each work-item
 * finds where its entries of the result begin in both runs, and merges those. */
TF_SCALAR_KERNEL tf_merge(TF_GLOBAL uint8_t *workspace, tf_index total, tf_index size, tf_index run,
                          tf_index side SORT_PARAMETERS) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, total);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, total);
  TF_GLOBAL tf_key *to_keys = TF_KEYS(workspace, 1 - side, total);
  TF_GLOBAL tf_index *to_positions = TF_POSITIONS(workspace, 1 - side, total);
  const tf_index chunks = (size + TF_MERGED - 1) / TF_MERGED;
  TF_EACH(c, total / size * chunks) {
    const tf_index row = c / chunks, first = (c - row * chunks) * TF_MERGED, pair = first - first % (2 * run);
    const tf_index left = row * size + pair, rest = size - pair, left_count = rest < run ? rest : run;
    const tf_index right = left + left_count, right_count = rest - left_count < run ? rest - left_count : run;
    const tf_index before = first - pair, all = left_count + right_count - before;
    tf_index low = before > right_count ? before - right_count : 0;
    tf_index high = before < left_count ? before : left_count;
    while (low < high) {
      const tf_index middle = low + (high - low) / 2, other = right + before - 1 - middle, own = left + middle;
      if (tf_before(keys[other], positions[other], keys[own], positions[own] SORT_ARGUMENTS)) high = middle;
      else low = middle + 1;
    }
    tf_index i = left + low, j = right + before - low;
    const tf_index left_end = right, right_end = right + right_count, to = left + before;
    for (tf_index k = 0; k < (all < TF_MERGED ? all : TF_MERGED); k++) {
      const int from_right =
          i == left_end || (j < right_end && tf_before(keys[j], positions[j], keys[i], positions[i] SORT_ARGUMENTS));
      const tf_index from = from_right ? j++ : i++;
      to_keys[to + k] = keys[from];
      to_positions[to + k] = positions[from];
    }
  }
}
