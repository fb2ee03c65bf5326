/* Moves of boxes of elements between views of tensors. KIND: DENSE, STRIDED, ROWS or TRANSPOSE, the kernel that the
 * source is to have. T: unsigned integer of an element's bytes. SOURCES, TARGETS: how many tensors a launch reads and
 * writes, 1 or 8. RANK: of the boxes. STEP: what the source moves by along a row: 0, 1, or
 * ANY. LATE: 0, or 1 where the source's, 2 where the target's offset is found at each launch: `late` holds it, or a
 * negative number after an error.
 *
 * Each box is `words` numbers: number of the source, of the target, offsets of both, count, and then for each
 * dimension, innermost first, size, strides of source and target, and what tf_quotient takes. Dimensions are in the
 * order of the target's memory. The third dimension of a launch numbers the boxes. */
#include <timberframe/accelerator/language.h>

#include <timberframe/accelerator/division.h>

#define DENSE 0
#define STRIDED 1
#define ROWS 2
#define TRANSPOSE 3
#define ANY 2
#define ELEMENT TF_STORAGE(T)
#define SOURCE(k) TF_GLOBAL const ELEMENT *s##k
#define TARGET(k) TF_GLOBAL ELEMENT *t##k

#if SOURCES == 1
#define SOURCE_PARAMETERS SOURCE(0)
#define CHOSEN_SOURCE(k) s0
#else
#define SOURCE_PARAMETERS SOURCE(0), SOURCE(1), SOURCE(2), SOURCE(3), SOURCE(4), SOURCE(5), SOURCE(6), SOURCE(7)
#define CHOSEN_SOURCE(k) \
  ((k) < 4 ? ((k) < 2 ? ((k) < 1 ? s0 : s1) : (k) < 3 ? s2 : s3) : ((k) < 6 ? ((k) < 5 ? s4 : s5) : (k) < 7 ? s6 : s7))
#endif
#if TARGETS == 1
#define TARGET_PARAMETERS TARGET(0)
#define CHOSEN_TARGET(k) t0
#else
#define TARGET_PARAMETERS TARGET(0), TARGET(1), TARGET(2), TARGET(3), TARGET(4), TARGET(5), TARGET(6), TARGET(7)
#define CHOSEN_TARGET(k) \
  ((k) < 4 ? ((k) < 2 ? ((k) < 1 ? t0 : t1) : (k) < 3 ? t2 : t3) : ((k) < 6 ? ((k) < 5 ? t4 : t5) : (k) < 7 ? t6 : t7))
#endif

#if LATE
#define PARAMETERS SOURCE_PARAMETERS, TARGET_PARAMETERS, TF_GLOBAL const tf_index *TF_RESTRICT boxes, tf_index words, \
    TF_GLOBAL const int64_t *late
#define RETURN_AFTER_ERROR if (late[0] < 0) return
#else
#define PARAMETERS SOURCE_PARAMETERS, TARGET_PARAMETERS, TF_GLOBAL const tf_index *TF_RESTRICT boxes, tf_index words
#define RETURN_AFTER_ERROR
#endif

#if LATE == 1
#define LATE_SOURCE + (tf_index)late[0]
#else
#define LATE_SOURCE
#endif
#if LATE == 2
#define LATE_TARGET + (tf_index)late[0]
#else
#define LATE_TARGET
#endif

/* The box of this launch's third dimension, where its first elements are, and its dimensions. */
#define FIND_BOX                                                                       \
  TF_GLOBAL const tf_index *box = boxes + (tf_index)tf_group_id(2) * words;            \
  TF_GLOBAL const ELEMENT *source = CHOSEN_SOURCE(box[0]) + box[2] LATE_SOURCE;        \
  TF_GLOBAL ELEMENT *target = CHOSEN_TARGET(box[1]) + box[3] LATE_TARGET;              \
  const tf_index count = box[4];                                                       \
  tf_index dimensions[RANK][5]; /* in registers: what is stored cannot change them */  \
  for (int32_t d = 0; d < RANK; d++)                                                   \
    for (int32_t k = 0; k < 5; k++) dimensions[d][k] = box[5 + 5 * d + k]

/* Adds to `from` and `to` where number i over the dimensions from `first` on lies. */
#define FIND_OFFSETS(i, first)                                                                              \
  {                                                                                                         \
    tf_index left = (i);                                                                                    \
    for (int32_t d = (first); d < RANK; d++) {                                                              \
      const tf_index size = dimensions[d][0];                                                               \
      const tf_index rest = d + 1 < RANK ? tf_quotient(left, size, dimensions[d][3], dimensions[d][4]) : 0; \
      const tf_index at = left - rest * size;                                                               \
      from += at * dimensions[d][1];                                                                        \
      to += at * dimensions[d][2];                                                                          \
      left = rest;                                                                                          \
    }                                                                                                       \
  }

#if KIND == DENSE

/* The target is dense: its elements one after the other. */
TF_KERNEL tf_dense(PARAMETERS) {
  RETURN_AFTER_ERROR;
  FIND_BOX;
  TF_EACH(i, count) {
    tf_index from = 0, to = 0;
    FIND_OFFSETS(i, 0)
    (void)to;
    target[i] = source[from];
  }
}

#elif KIND == STRIDED

/* Any strides: one element after the other in the order of the target. */
TF_KERNEL tf_strided(PARAMETERS) {
  RETURN_AFTER_ERROR;
  FIND_BOX;
  TF_EACH(i, count) {
    tf_index from = 0, to = 0;
    FIND_OFFSETS(i, 0)
    target[to] = source[from];
  }
}

#elif KIND == ROWS

/* The innermost dimension is contiguous in the target. count: of rows. */
TF_KERNEL tf_rows(PARAMETERS) {
  RETURN_AFTER_ERROR;
  FIND_BOX;
  const tf_index length = dimensions[0][0];
#if STEP == ANY
  const tf_index step = dimensions[0][1];
#else
  const tf_index step = STEP; /* a constant, so that compilers see neighbours */
#endif
  TF_EACH_ROW(row, count) {
    tf_index from = 0, to = 0;
    FIND_OFFSETS(row, 1)
    TF_EACH(i, length) target[to + i] = source[from + i * step];
  }
}

#else

#define SIDE 32 /* of a tile; a work-group is SIDE x SIDE / 4 */

/* The first dimension is contiguous in the target, the second in the source. count: number of such planes; a group
 * takes one tile of some of them. */
TF_KERNEL tf_transpose(PARAMETERS) {
  TF_SHARED ELEMENT tile[SIDE][SIDE + 1]; /* one more, so that a column lies in different banks */
  FIND_BOX;
  const tf_index along = dimensions[0][0], across = dimensions[1][0];
  const tf_index along_stride = dimensions[0][1], across_stride = dimensions[1][2];
  const tf_index tiles = (along + SIDE - 1) / SIDE;
  const tf_index first = (tf_index)tf_group_id(0) % tiles * SIDE, second = (tf_index)tf_group_id(0) / tiles * SIDE;
  const int32_t x = tf_local_id(0), y = tf_local_id(1);
#if LATE
  const tf_index planes = late[0] < 0 ? 0 : count; /* not a return: groups meet at barriers */
#else
  const tf_index planes = count;
#endif
  for (tf_index plane = (tf_index)tf_group_id(1); plane < planes; plane += (tf_index)tf_group_count(1)) {
    tf_index from = 0, to = 0;
    FIND_OFFSETS(plane, 2)
    for (int32_t k = y; k < SIDE; k += SIDE / 4)
      if (first + k < along && second + x < across)
        tile[k][x] = source[from + (first + k) * along_stride + second + x];
    tf_barrier();
    for (int32_t k = y; k < SIDE; k += SIDE / 4)
      if (second + k < across && first + x < along)
        target[to + (second + k) * across_stride + first + x] = tile[x][k];
    tf_barrier();
  }
}

#endif
