/* Distinct items and their numbers. Macros: those of items.h, OUT_INDEX: dtype of the numbers; COUNTS: defined where it
 * is counted how often each occurs.
 *
 * Side `side` of the workspace holds the sorted items, so that the first of equal ones is the first that occurs. The
 * positions of the other side become, by item, whether it is such a first one, and then its number. After both sides
 * come the first items by number. */
#include <timberframe/accelerator/items.h>

#define TF_NUMBERS(workspace, side, count) TF_POSITIONS(workspace, 1 - (side), count)
#define TF_FIRST_ITEMS(workspace, count) TF_POSITIONS(workspace, 2, count)

/* Where the run of items equal to entry j begins. */
static inline tf_index tf_run_begin(TF_GLOBAL const tf_bits *items, TF_GLOBAL const tf_key *keys,
                                    TF_GLOBAL const tf_index *positions, tf_index j, tf_index item_count,
                                    tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  if (tf_item_unordered(items, positions[j], item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS)) return j;
  return tf_find(keys, positions, item_count, keys[j], positions[j], 0 SORT_ARGUMENTS);
}

TF_KERNEL tf_mark_first(TF_GLOBAL const tf_bits *items, TF_GLOBAL uint8_t *workspace, tf_index side,
                        tf_index item_count, tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, item_count);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, item_count);
  TF_EACH(j, item_count) {
    const int first = !j || tf_before(keys[j - 1], positions[j - 1], keys[j], positions[j] SORT_ARGUMENTS) ||
                      tf_item_unordered(items, positions[j], item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS);
    TF_NUMBERS(workspace, side, item_count)[positions[j]] = first ? 1 : 0;
  }
}

#define COMPACT_PARAMETERS                                                                                  \
  TF_GLOBAL const tf_bits *items, TF_GLOBAL uint8_t *workspace, TF_GLOBAL tf_bits *distinct, tf_index side, \
      tf_index item_elements,
#define COMPACT_KEEPS(i) TF_NUMBERS(workspace, side, count)[i]
#define COMPACT_EMIT(at, i)                               \
  do {                                                    \
    TF_NUMBERS(workspace, side, count)[i] = (at);         \
    TF_FIRST_ITEMS(workspace, count)[at] = (i);           \
    if (item_elements == 1) distinct[at] = items[i];      \
  } while (0)
#include <timberframe/accelerator/compact.h>

TF_KERNEL tf_number(TF_GLOBAL const tf_bits *items, TF_GLOBAL uint8_t *workspace,
                    TF_GLOBAL TF_STORAGE(OUT_INDEX) *numbers, TF_GLOBAL TF_STORAGE(OUT_INDEX) *counts, tf_index side,
                    tf_index item_count, tf_index item_inner, tf_index item_elements, TF_ORDER_PARAMETERS) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, item_count);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, item_count);
  TF_EACH(j, item_count) {
    const tf_index begin =
        tf_run_begin(items, keys, positions, j, item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS);
    const tf_index number = TF_NUMBERS(workspace, side, item_count)[positions[begin]];
    numbers[positions[j]] = (TF_STORAGE(OUT_INDEX))number;
#ifdef COUNTS
    if (begin == j) {
      const tf_index at = positions[j];
      const int alone = tf_item_unordered(items, at, item_count, item_inner, item_elements, TF_ORDER_ARGUMENTS);
      const tf_index end = alone ? j + 1 : tf_find(keys, positions, item_count, keys[j], at, 1 SORT_ARGUMENTS);
      counts[number] = (TF_STORAGE(OUT_INDEX))(end - j);
    }
#else
    (void)counts;
#endif
  }
}

/* The elements of the distinct items, [outer, found, inner]. */
TF_KERNEL tf_take_items(TF_GLOBAL const tf_bits *items, TF_GLOBAL uint8_t *workspace, TF_GLOBAL tf_bits *distinct,
                        tf_index size, tf_index found, tf_index item_count, tf_index item_inner) {
  TF_EACH(i, size) {
    const tf_index row = i / item_inner, outer = row / found;
    const tf_index item = TF_FIRST_ITEMS(workspace, item_count)[row - outer * found];
    distinct[i] = items[(outer * item_count + item) * item_inner + i - row * item_inner];
  }
}
