/* The first entries of sorted rows: TopK and NthElement. BITS: unsigned integer as wide as an element; POSITION: dtype
 * of the positions; KEY: dtype of the keys; ONE: defined where the last of the entries found is the result, and
 * positions are not. */
#include <timberframe/accelerator/order.h>
#include <timberframe/accelerator/sort.h>

static inline void tf_put(TF_GLOBAL const tf_bits *row, TF_GLOBAL tf_bits *values,
                          TF_GLOBAL TF_STORAGE(POSITION) *positions, tf_index number, tf_index k, tf_index e,
                          tf_index position) {
#ifdef ONE
  (void)positions;
  if (e == k - 1) values[number] = row[position];
#else
  values[number * k + e] = row[position];
  positions[number * k + e] = (TF_STORAGE(POSITION))position;
#endif
}

/* Sorts each block of rows of `size` entries: at level 0 those of the input, else those that a level before left on
 * side `side` of the workspace. The first `keep` of each block go to the other side (level 0: to side 0), in rows of
 * `following` entries; those of a single block are the result. flip: all bits where the largest come first, or 0. */
TF_KERNEL tf_top_blocks(TF_GLOBAL const tf_bits *input, TF_GLOBAL tf_bits *values,
                        TF_GLOBAL TF_STORAGE(POSITION) *positions, TF_GLOBAL uint8_t *workspace, tf_index total,
                        tf_index width, tf_index size, tf_index following, tf_index keep, tf_index k, int32_t level,
                        int32_t side, tf_key flip, TF_ORDER_PARAMETERS) {
  TF_SHARED tf_key keys[2 * TF_BLOCK];
  TF_SHARED uint16_t order[2 * TF_BLOCK];
  const tf_index blocks = (size + TF_BLOCK - 1) / TF_BLOCK, group = (tf_index)tf_group_id(0), number = group / blocks;
  const tf_index base = (group - number * blocks) * TF_BLOCK;
  const int32_t here = (int32_t)(size - base < TF_BLOCK ? size - base : TF_BLOCK);
  TF_GLOBAL const tf_bits *row = input + number * width;
  TF_GLOBAL const tf_key *earlier_keys = TF_KEYS(workspace, side, total) + number * size + base;
  TF_GLOBAL const tf_index *earlier_positions = TF_POSITIONS(workspace, side, total) + number * size + base;
  for (int32_t e = tf_local_id(0); e < here; e += tf_local_size(0)) {
    keys[e] = level ? earlier_keys[e] : (tf_key)tf_order(row[base + e], TF_ORDER_ARGUMENTS) ^ flip;
    order[e] = (uint16_t)e;
  }
  tf_barrier();
  const int32_t sorted = tf_sort_block(keys, order, here, base);
  const int32_t to = level ? 1 - side : 0, kept = (int32_t)(here < keep ? here : keep);
  const tf_index first = number * following + base / TF_BLOCK * keep;
  for (int32_t e = tf_local_id(0); e < kept; e += tf_local_size(0)) {
    const int32_t entry = order[sorted + e];
    const tf_index position = level ? earlier_positions[entry] : base + entry;
    if (blocks == 1) {
      tf_put(row, values, positions, number, k, e, position);
    } else {
      TF_KEYS(workspace, to, total)[first + e] = keys[sorted + e];
      TF_POSITIONS(workspace, to, total)[first + e] = position;
    }
  }
}

/* Level 0 of the same for few entries: each work-item takes `chunk` entries of a row, in which it looks for the next
 * one k times. */
TF_SCALAR_KERNEL tf_top_chunks(TF_GLOBAL const tf_bits *input, TF_GLOBAL tf_bits *values,
                            TF_GLOBAL TF_STORAGE(POSITION) *positions, TF_GLOBAL uint8_t *workspace, tf_index total,
                            tf_index rows, tf_index width, tf_index following, tf_index chunk, tf_index k, tf_key flip,
                            TF_ORDER_PARAMETERS) {
  const tf_index chunks = (width + chunk - 1) / chunk;
  TF_EACH(c, rows * chunks) {
    const tf_index number = c / chunks, first = (c - number * chunks) * chunk;
    const tf_index end = width - first < chunk ? width : first + chunk, to = number * following + first / chunk * k;
    TF_GLOBAL const tf_bits *row = input + number * width;
    tf_key last_key = 0;
    tf_index last = -1;
    for (tf_index e = 0; e < k && e < end - first; e++) {
      tf_key best_key = 0;
      tf_index best = -1;
      for (tf_index i = first; i < end; i++) {
        const tf_key key = (tf_key)tf_order(row[i], TF_ORDER_ARGUMENTS) ^ flip;
        const int is_taken = last >= 0 && (key < last_key || (key == last_key && i <= last));
        if (!is_taken && (best < 0 || key < best_key)) {
          best = i;
          best_key = key;
        }
      }
      if (chunks == 1) {
        tf_put(row, values, positions, number, k, e, best);
      } else {
        TF_KEYS(workspace, 0, total)[to + e] = best_key;
        TF_POSITIONS(workspace, 0, total)[to + e] = best;
      }
      last = best;
      last_key = best_key;
    }
  }
}

/* Takes the first k of each row of `width` sorted entries. */
TF_KERNEL tf_top_take(TF_GLOBAL const tf_bits *input, TF_GLOBAL tf_bits *values,
                      TF_GLOBAL TF_STORAGE(POSITION) *positions, TF_GLOBAL uint8_t *workspace, tf_index total,
                      tf_index width, tf_index count, tf_index k, int32_t side) {
  TF_EACH(i, count) {
    const tf_index number = i / k, e = i - number * k;
    const tf_index position = TF_POSITIONS(workspace, side, total)[number * width + e];
    tf_put(input + number * width, values, positions, number, k, e, position);
  }
}
