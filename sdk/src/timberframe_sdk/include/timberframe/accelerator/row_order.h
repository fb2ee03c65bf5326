/* Finds the rows that indices name. TINDEX: dtype of the indices. */
#include <timberframe/accelerator/language.h>
#include <timberframe/accelerator/row_tables.h>

/* Checks the indices, and makes the entries of the rows that they name what the next kernel begins with. */
TF_KERNEL tf_check_rows(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL int32_t *tables,
                        TF_GLOBAL int64_t *status, int64_t node, int32_t count, tf_index limit) {
  TF_EACH(k, count) {
    const int64_t row = TF_LOAD(TINDEX, indices, k);
    if (row < 0 || row >= limit) {
      tf_report(status, node, 1, row, k, limit);
    } else {
      TF_FIRST(row) = INT32_MAX;
      TF_LAST(row) = -1;
    }
  }
}

TF_KERNEL tf_find_ends(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL int32_t *tables,
                       TF_GLOBAL const int64_t *status, int32_t count, tf_index limit) {
  if (status[0] != 0) return;
  TF_EACH(k, count) {
    const tf_index row = (tf_index)TF_LOAD(TINDEX, indices, k);
    tf_atomic_min_int32(&TF_FIRST(row), (int32_t)k);
    tf_atomic_max_int32(&TF_LAST(row), (int32_t)k);
  }
}

TF_KERNEL tf_link_rows(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL int32_t *tables,
                       TF_GLOBAL const int64_t *status, int32_t count, tf_index limit) {
  if (status[0] != 0) return;
  TF_EACH(k, count) {
    const tf_index row = (tf_index)TF_LOAD(TINDEX, indices, k);
    int32_t j = -1;
    if (TF_LAST(row) != k) {
      for (j = (int32_t)k + 1; TF_LOAD(TINDEX, indices, j) != row;) j++;
    }
    TF_NEXT(k) = j;
  }
}
