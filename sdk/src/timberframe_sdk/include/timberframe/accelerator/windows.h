/* Windows over volumes of [batch, planes, rows, columns, inner] elements; an image is a volume of one plane.
 *
 * w: inner, then three numbers each (planes, rows, columns) for sizes, numbers of windows, sizes of a window, strides and
 * padding before; then multiplier and shift of tf_quotient for inner, the numbers of windows and the sizes (columns
 * first), and the strides (planes first). */
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
#define WINDOWS TF_GLOBAL const tf_index *w

static inline tf_index tf_least(tf_index a, tf_index b) {
  return a < b ? a : b;
}

static inline tf_index tf_most(tf_index a, tf_index b) {
  return a > b ? a : b;
}

/* Element i of a tensor of windows (OUT, 1) or of the volumes (SIZE, 4): volume, z, y, x and c. */
#define FIND(i, DOMAIN, k)                                                                              \
  const tf_index pixel = QUOTIENT(i, INNER, 0), c = (i) - pixel * INNER;                                \
  const tf_index row = QUOTIENT(pixel, DOMAIN(2), k), x = pixel - row * DOMAIN(2);                      \
  const tf_index plane = QUOTIENT(row, DOMAIN(1), (k) + 1), y = row - plane * DOMAIN(1);                \
  const tf_index volume = QUOTIENT(plane, DOMAIN(0), (k) + 2), z = plane - volume * DOMAIN(0)
#define FIND_WINDOW(i) FIND(i, OUT, 1)
#define FIND_ELEMENT(i) FIND(i, SIZE, 4)

/* first<d> and end<d>: what of dimension d a window covers, or which windows cover a place. */
#define COVERED(d, at)                                                                                  \
  const tf_index begin##d = (at) * STRIDE(d) - BEFORE(d), first##d = tf_most(begin##d, 0),              \
                 end##d = tf_least(begin##d + WINDOW(d), SIZE(d))
#define COVERING(d, at)                                                                                 \
  const tf_index place##d = (at) + BEFORE(d),                                                           \
                 first##d = place##d < WINDOW(d) ? 0 : QUOTIENT(place##d - WINDOW(d), STRIDE(d), 7 + (d)) + 1, \
                 end##d = tf_least(QUOTIENT(place##d, STRIDE(d), 7 + (d)) + 1, OUT(d))
#define EACH_OF(i, j, k)                          \
  for (tf_index i = first0; i < end0; i++)        \
    for (tf_index j = first1; j < end1; j++)      \
      for (tf_index k = first2; k < end2; k++)
#define ELEMENT_AT(i, j, k) ((((volume * SIZE(0) + (i)) * SIZE(1) + (j)) * SIZE(2) + (k)) * INNER + c)
#define WINDOW_AT(i, j, k) ((((volume * OUT(0) + (i)) * OUT(1) + (j)) * OUT(2) + (k)) * INNER + c)

/* Number of elements along dimension d that window number `at` covers. */
#define EXTENT(d, at) \
  (tf_least((at) * STRIDE(d) - BEFORE(d) + WINDOW(d), SIZE(d)) - tf_most((at) * STRIDE(d) - BEFORE(d), 0))

#endif
