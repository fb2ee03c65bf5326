/* Windows over volumes of [batch, planes, rows, columns, inner] elements; an image is a volume of one plane.
 *
 * w: inner, then three numbers each (planes, rows, columns) for sizes, numbers of windows, sizes of a window, strides
 * and padding before; then multiplier and shift of tf_quotient for inner, the numbers of windows and the sizes (columns
 * first), and the strides (planes first). WIDE: 1 where inner is large, so that a launch's first dimension goes over
 * inner and its second over pixels; with 0 they go over the values of a row, and over rows. */
#ifndef TIMBERFRAME_ACCELERATOR_WINDOWS_H
#define TIMBERFRAME_ACCELERATOR_WINDOWS_H

#include <timberframe/accelerator/language.h>

#include <timberframe/accelerator/division.h>

#define INNER w[0]
#define SIZE(d) w[1 + (d)]
#define OUT(d) w[4 + (d)]
#define WINDOW(d) w[7 + (d)]
#define STRIDE(d) w[10 + (d)]
#define BEFORE(d) w[13 + (d)]
#define QUOTIENT(n, divisor, k) tf_quotient(n, divisor, w[16 + 2 * (k)], w[17 + 2 * (k)])
#define WINDOWS TF_GLOBAL const tf_index *TF_RESTRICT w

static inline tf_index tf_least(tf_index a, tf_index b) {
  return a < b ? a : b;
}

static inline tf_index tf_most(tf_index a, tf_index b) {
  return a > b ? a : b;
}

/* EACH_RESULT is done for each value of a tensor of windows (OUT, 1) or of the volumes (SIZE, 4), whose indices ROW and
 * LANE find: volume, z, y, x and c; its number is RESULT. `rows` is a parameter of the kernel. */
#if WIDE
#define EACH_ROW TF_EACH_ROW(row, rows)
#define ROW(DOMAIN, q)                                                                     \
  const tf_index line = QUOTIENT(row, DOMAIN(2), q), x = row - line * DOMAIN(2);           \
  LINE(DOMAIN, q)
#define EACH_LANE(DOMAIN) TF_EACH(c, INNER)
#define LANE
#define RESULT(DOMAIN) (row * INNER + c)
#else
#define EACH_ROW TF_EACH_ROW(line, rows)
#define ROW(DOMAIN, q) LINE(DOMAIN, q)
#define EACH_LANE(DOMAIN) TF_EACH(n, DOMAIN(2) * INNER)
#define LANE const tf_index x = QUOTIENT(n, INNER, 0), c = n - x * INNER;
#define RESULT(DOMAIN) (line * DOMAIN(2) * INNER + n)
#endif
#define LINE(DOMAIN, q)                                                                     \
  const tf_index plane = QUOTIENT(line, DOMAIN(1), (q) + 1), y = line - plane * DOMAIN(1);  \
  const tf_index volume = QUOTIENT(plane, DOMAIN(0), (q) + 2), z = plane - volume * DOMAIN(0)
#define WINDOW_ROW ROW(OUT, 1)
#define ELEMENT_ROW ROW(SIZE, 4)

/* What of dimension d a window covers, or which windows cover a position, in order: first<d> to end<d>, without it.
 * Where neighbouring work-items have columns of their own, all go over as many and leave out what is not theirs. */
#define COVERED(d, at)                                                                      \
  const tf_index begin##d = (at) * STRIDE(d) - BEFORE(d), first##d = tf_most(begin##d, 0),  \
                 end##d = tf_least(begin##d + WINDOW(d), SIZE(d))
#define COVERING(d, at)                                                                                              \
  const tf_index position##d = (at) + BEFORE(d),                                                                     \
                 first##d = position##d < WINDOW(d) ? 0 : QUOTIENT(position##d - WINDOW(d), STRIDE(d), 7 + (d)) + 1, \
                 end##d = tf_least(QUOTIENT(position##d, STRIDE(d), 7 + (d)) + 1, OUT(d))
#define EACH_ROW_OF(i, j)                      \
  for (tf_index i = first0; i < end0; i++)     \
    for (tf_index j = first1; j < end1; j++)
#if WIDE
#define COVERED_ROWS \
  COVERED(0, z);     \
  COVERED(1, y);     \
  COVERED(2, x)
#define EACH_COVERED(i, j, k) EACH_ROW_OF(i, j) for (tf_index k = first2; k < end2; k++)
#define COVERING_ROWS \
  COVERING(0, z);     \
  COVERING(1, y);     \
  COVERING(2, x)
#define EACH_COVERING(i, j, k) EACH_COVERED(i, j, k)
#else
#define COVERED_ROWS \
  COVERED(0, z);     \
  COVERED(1, y)
#define EACH_COVERED(i, j, k)                                                               \
  const tf_index begin2 = x * STRIDE(2) - BEFORE(2);                                        \
  EACH_ROW_OF(i, j) for (tf_index k = begin2; k < begin2 + WINDOW(2); k++) if (k >= 0 && k < SIZE(2))
#define COVERING_ROWS \
  COVERING(0, z);     \
  COVERING(1, y);     \
  const tf_index most2 = (WINDOW(2) + STRIDE(2) - 1) / STRIDE(2)
#define EACH_COVERING(i, j, k)                                                         \
  const tf_index position2 = x + BEFORE(2), last2 = QUOTIENT(position2, STRIDE(2), 9); \
  EACH_ROW_OF(i, j) for (tf_index k = last2 - most2 + 1; k <= last2; k++)              \
    if (k >= 0 && k < OUT(2) && position2 - k * STRIDE(2) < WINDOW(2))
#endif
#define ELEMENT_AT(i, j, k) ((((volume * SIZE(0) + (i)) * SIZE(1) + (j)) * SIZE(2) + (k)) * INNER + c)
#define WINDOW_AT(i, j, k) ((((volume * OUT(0) + (i)) * OUT(1) + (j)) * OUT(2) + (k)) * INNER + c)

/* Number of elements along dimension d that window number `at` covers. */
#define EXTENT(d, at) \
  (tf_least((at) * STRIDE(d) - BEFORE(d) + WINDOW(d), SIZE(d)) - tf_most((at) * STRIDE(d) - BEFORE(d), 0))

#endif
