/* One round of sorting the entries of sort.h by four bits of their keys, in order where these are equal. KEY: dtype of
 * the keys.
 *
 * Each work-item counts how often each digit occurs in a run of entries of its own; the sums of the counts by digit,
 * group and work-item tell where its entries go. The counts by digit and group lie after both sides of the
 * workspace. */
#include <timberframe/accelerator/group_scan.h>
#include <timberframe/accelerator/sort.h>

#define TF_DIGITS 16
#define TF_DIGIT_RUN 16 /* entries of a work-item */
#define TF_DIGIT_GROUP (TF_SCANNING * TF_DIGIT_RUN)
#define TF_DIGIT(key, shift) ((int32_t)(((key) >> (shift)) & (TF_DIGITS - 1)))
#define TF_DIGIT_COUNTS(workspace, count) TF_POSITIONS(workspace, 2, count)

/* Makes the counts of the group, by digit and work-item, into the sums of those before. */
TF_INLINE void tf_count_digits(TF_GLOBAL const tf_key *keys, TF_LOCAL uint16_t *table, TF_LOCAL tf_index *shared,
                               tf_index first, tf_index count, int32_t shift) {
  const int32_t item = tf_local_id(0);
  tf_index own = 0, sum;
  for (int32_t d = 0; d < TF_DIGITS; d++) table[d * TF_SCANNING + item] = 0;
  for (tf_index i = first; i < first + TF_DIGIT_RUN && i < count; i++) {
    table[TF_DIGIT(keys[i], shift) * TF_SCANNING + item]++;
  }
  tf_barrier();
  for (int32_t k = 0; k < TF_DIGITS; k++) own += table[item * TF_DIGITS + k];
  tf_index before = tf_scan_group(shared, own, &sum);
  for (int32_t k = 0; k < TF_DIGITS; k++) {
    const uint16_t number = table[item * TF_DIGITS + k];
    table[item * TF_DIGITS + k] = (uint16_t)before;
    before += number;
  }
  tf_barrier();
}

TF_SCALAR_KERNEL tf_radix_count(TF_GLOBAL uint8_t *workspace, tf_index count, tf_index side, int32_t shift) {
  TF_SHARED uint16_t table[TF_DIGITS * TF_SCANNING];
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  const tf_index group = (tf_index)tf_group_id(0), begin = group * TF_DIGIT_GROUP;
  const tf_index all = count - begin < TF_DIGIT_GROUP ? count - begin : TF_DIGIT_GROUP;
  const int32_t d = tf_local_id(0);
  tf_count_digits(TF_KEYS(workspace, side, count), table, shared, begin + d * TF_DIGIT_RUN, count, shift);
  if (d < TF_DIGITS) {
    const tf_index end = d + 1 < TF_DIGITS ? table[(d + 1) * TF_SCANNING] : all;
    TF_DIGIT_COUNTS(workspace, count)[d * (tf_index)tf_group_count(0) + group] = end - table[d * TF_SCANNING];
  }
}

/* Makes the counts, so many numbers, into the sums of those before, in one group. */
TF_SCALAR_KERNEL tf_radix_sums(TF_GLOBAL uint8_t *workspace, tf_index count, tf_index numbers) {
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  TF_GLOBAL tf_index *counts = TF_DIGIT_COUNTS(workspace, count);
  const tf_index run = (numbers + TF_SCANNING - 1) / TF_SCANNING, first = tf_local_id(0) * run;
  tf_index own = 0, sum;
  for (tf_index i = first; i < first + run && i < numbers; i++) own += counts[i];
  tf_index before = tf_scan_group(shared, own, &sum);
  for (tf_index i = first; i < first + run && i < numbers; i++) {
    const tf_index number = counts[i];
    counts[i] = before;
    before += number;
  }
}

TF_SCALAR_KERNEL tf_radix_move(TF_GLOBAL uint8_t *workspace, tf_index count, tf_index side, int32_t shift) {
  TF_SHARED uint16_t table[TF_DIGITS * TF_SCANNING];
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  TF_SHARED tf_index begins[TF_DIGITS];
  const int32_t item = tf_local_id(0);
  const tf_index group = (tf_index)tf_group_id(0), first = group * TF_DIGIT_GROUP + item * TF_DIGIT_RUN;
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, count);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, count);
  tf_count_digits(keys, table, shared, first, count, shift);
  if (item < TF_DIGITS) {
    const tf_index before = TF_DIGIT_COUNTS(workspace, count)[item * (tf_index)tf_group_count(0) + group];
    begins[item] = before - table[item * TF_SCANNING];
  }
  tf_barrier();
  for (tf_index i = first; i < first + TF_DIGIT_RUN && i < count; i++) {
    const int32_t digit = TF_DIGIT(keys[i], shift);
    const tf_index to = begins[digit] + table[digit * TF_SCANNING + item]++;
    TF_KEYS(workspace, 1 - side, count)[to] = keys[i];
    TF_POSITIONS(workspace, 1 - side, count)[to] = positions[i];
  }
}
