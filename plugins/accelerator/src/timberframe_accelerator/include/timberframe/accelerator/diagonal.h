/* Diagonals and bands of matrices. T: unsigned integer of an element's bytes; TINDEX: dtype of a band's numbers.
 *
 * Diagonals `lower` to `upper` of matrices of rows x columns are packed as one row of `longest` positions for each, the
 * highest first; a row is filled from the left where left_above (diagonals above the main one) or left_below says
 * so. */
#include <timberframe/accelerator/language.h>

#define ELEMENT TF_STORAGE(T)
#define DIAGONALS tf_index rows, tf_index columns, tf_index lower, tf_index upper, tf_index longest, \
    int32_t left_above, int32_t left_below

static inline tf_index tf_diagonal_length(tf_index d, tf_index rows, tf_index columns) {
  const tf_index down = d < 0 ? rows + d : rows, across = d > 0 ? columns - d : columns;
  const tf_index length = down < across ? down : across;
  return length > 0 ? length : 0;
}

/* Where diagonal d begins in its packed row. */
static inline tf_index tf_diagonal_start(tf_index d, DIAGONALS) {
  const int left = (d >= 0 && left_above) || (d <= 0 && left_below);
  return left ? 0 : longest - tf_diagonal_length(d, rows, columns);
}

#define START(d) tf_diagonal_start(d, rows, columns, lower, upper, longest, left_above, left_below)

/* lines: rows of all packed forms. padding: one element, or, where not `padded`, anything. */
TF_KERNEL tf_matrix_diag_part(TF_GLOBAL const ELEMENT *matrices, TF_GLOBAL const ELEMENT *padding, int32_t padded,
                              TF_GLOBAL ELEMENT *out, tf_index lines, DIAGONALS) {
  const tf_index number = upper - lower + 1;
  const ELEMENT rest = padded ? padding[0] : 0;
  TF_EACH_ROW(line, lines) {
    const tf_index matrix = line / number, d = upper - (line - matrix * number), start = START(d);
    const tf_index length = tf_diagonal_length(d, rows, columns);
    TF_EACH(i, longest) {
      const tf_index position = i - start;
      const tf_index down = d < 0 ? position - d : position, across = d > 0 ? position + d : position;
      const int there = position >= 0 && position < length;
      out[line * longest + i] = there ? matrices[(matrix * rows + down) * columns + across] : rest;
    }
  }
}

/* lines: rows of all matrices. Elements off the diagonals are those of `others`: the same position's where `whole`, the
 * first where `padded`, else 0. */
TF_KERNEL tf_matrix_diag(TF_GLOBAL const ELEMENT *packed, TF_GLOBAL const ELEMENT *others, int32_t padded,
                         int32_t whole, TF_GLOBAL ELEMENT *out, tf_index lines, DIAGONALS) {
  TF_EACH_ROW(line, lines) {
    const tf_index matrix = line / rows, down = line - matrix * rows;
    TF_EACH(across, columns) {
      const tf_index d = across - down, i = line * columns + across;
      if (d >= lower && d <= upper) {
        const tf_index position = START(d) + (d < 0 ? across : down);
        out[i] = packed[(matrix * (upper - lower + 1) + upper - d) * longest + position];
      } else {
        out[i] = whole ? others[i] : padded ? others[0] : 0;
      }
    }
  }
}

/* lines: rows of all matrices. Reasons: 1 num_lower, 2 num_upper too large (it, limit). */
TF_KERNEL tf_matrix_band_part(TF_GLOBAL const ELEMENT *in, TF_GLOBAL const TF_STORAGE(TINDEX) *num_lower,
                              TF_GLOBAL const TF_STORAGE(TINDEX) *num_upper, TF_GLOBAL ELEMENT *out, tf_index lines,
                              tf_index rows, tf_index columns, TF_GLOBAL int64_t *status, int64_t node) {
  const int64_t low = TF_LOAD(TINDEX, num_lower, 0), high = TF_LOAD(TINDEX, num_upper, 0);
  if (tf_global_id(0) == 0 && tf_global_id(1) == 0) {
    if (low > rows) tf_report(status, node, 1, low, rows, 0);
    else if (high > columns) tf_report(status, node, 2, high, columns, 0);
  }
  TF_EACH_ROW(line, lines) {
    const tf_index down = line % rows;
    TF_EACH(across, columns) {
      const tf_index i = line * columns + across;
      out[i] = (low < 0 || down - across <= low) && (high < 0 || across - down <= high) ? in[i] : 0;
    }
  }
}
