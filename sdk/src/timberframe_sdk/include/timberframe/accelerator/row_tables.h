/* Which rows of a variable indices name, and in what order. */
#ifndef TIMBERFRAME_ACCELERATOR_ROW_TABLES_H
#define TIMBERFRAME_ACCELERATOR_ROW_TABLES_H

/* What `tables` holds, of int32: for each of `limit` rows the first and the last place that names it, then for each
 * place the next one of its row, -1 for the last. */
#define TF_FIRST(row) tables[row]
#define TF_LAST(row) tables[limit + (row)]
#define TF_NEXT(k) tables[2 * (int64_t)limit + (k)]

#endif
