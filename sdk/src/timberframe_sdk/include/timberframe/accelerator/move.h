/* Moves of boxes of elements between views of tensors. T: unsigned integer of an element's bytes. SOURCES, TARGETS: how
 * many tensors a launch reads and writes, 1 or 8. STEP: what the source moves by along a row, 0 or 1. LATE: 0, or 1 where
 * the source's, 2 where the target's offset is found at each launch: `late` holds it, or a negative number after an
 * error.
 *
 * Each box is `words` numbers: number of the source, of the target, offsets of both, rank, count, and then for each
 * dimension, innermost first, size, strides of source and target, and what tf_quotient takes. Dimensions are in the
 * order of the target's memory. The third dimension of a launch numbers the boxes. */
#include <timberframe/accelerator/language.h>

#include <timberframe/accelerator/division.h>

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
#define PARAMETERS SOURCE_PARAMETERS, TARGET_PARAMETERS, TF_GLOBAL const tf_index *boxes, tf_index words, \
    TF_GLOBAL const int64_t *late
#define RETURN_AFTER_ERROR if (late[0] < 0) return
#else
#define PARAMETERS SOURCE_PARAMETERS, TARGET_PARAMETERS, TF_GLOBAL const tf_index *boxes, tf_index words
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

/* The box of this launch's third dimension, and where its first elements are. */
#define FIND_BOX                                                                       \
  TF_GLOBAL const tf_index *box = boxes + (tf_index)tf_group_id(2) * words;            \
  TF_GLOBAL const ELEMENT *source = CHOSEN_SOURCE(box[0]) + box[2] LATE_SOURCE;        \
  TF_GLOBAL ELEMENT *target = CHOSEN_TARGET(box[1]) + box[3] LATE_TARGET;              \
  const tf_index rank = box[4], count = box[5];                                        \
  TF_GLOBAL const tf_index *dimensions = box + 6

/* Adds to `from` and `to` where number i over the dimensions from `first` on lies. */
#define FIND_PLACE(i, first)                                                           \
  {                                                                                    \
    tf_index left = (i);                                                               \
    for (tf_index d = (first); d < rank; d++) {                                        \
      TF_GLOBAL const tf_index *dim = dimensions + 5 * d;                              \
      const tf_index rest = d + 1 < rank ? tf_quotient(left, dim[0], dim[3], dim[4]) : 0; \
      const tf_index at = left - rest * dim[0];                                        \
      from += at * dim[1];                                                             \
      to += at * dim[2];                                                               \
      left = rest;                                                                     \
    }                                                                                  \
  }

/* Any strides: one element after the other in the order of the target. */
TF_KERNEL tf_strided(PARAMETERS) {
  RETURN_AFTER_ERROR;
  FIND_BOX;
  TF_EACH(i, count) {
    tf_index from = 0, to = 0;
    FIND_PLACE(i, 0)
    target[to] = source[from];
  }
}

/* The innermost dimension is contiguous in the target, and in the source or one element there. count: of rows. */
TF_KERNEL tf_rows(PARAMETERS) {
  RETURN_AFTER_ERROR;
  FIND_BOX;
  const tf_index length = dimensions[0];
  for (tf_index row = (tf_index)tf_global_id(1); row < count; row += (tf_index)tf_global_size(1)) {
    tf_index from = 0, to = 0;
    FIND_PLACE(row, 1)
    TF_EACH(i, length) target[to + i] = source[from + i * STEP];
  }
}

#define SIDE 32 /* of a tile; a work-group is SIDE x SIDE / 4 */

/* The first dimension is contiguous in the target, the second in the source. count: number of such planes; a group takes
 * one tile of some of them. */
TF_KERNEL tf_transpose(PARAMETERS) {
  TF_SHARED ELEMENT tile[SIDE][SIDE + 1]; /* one more, so that a column lies in different banks */
  FIND_BOX;
  const tf_index along = dimensions[0], across = dimensions[5];
  const tf_index along_stride = dimensions[1], across_stride = dimensions[7];
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
    FIND_PLACE(plane, 2)
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
