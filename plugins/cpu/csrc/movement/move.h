/* Moving blocks of elements: what serves transposing, slicing, joining, padding, repeating and filling.
 *
 * A move copies a box of up to MOVE_MAX_RANK dimensions between two tensors, each with its own strides. The plan comes
 * from Python (timberframe_cpu/moves.py), which has merged what can be merged, brought the dimensions into the order of
 * the target's memory, and chosen how the innermost ones are walked. */
#ifndef TIMBERFRAME_CPU_MOVE_H
#define TIMBERFRAME_CPU_MOVE_H

#include <timberframe/kernel.h>

#define MOVE_MAX_RANK 16

enum move_kind {
  MOVE_ROWS = 0,     /* the innermost dimension is contiguous on both sides */
  MOVE_FILL = 1,     /* it is contiguous in the target, and one element in the source */
  MOVE_STRIDED = 2,  /* any other stride */
  MOVE_TRANSPOSE = 3 /* the last but one is contiguous in the source, the last in the target */
};

/* The words of one move; `dimensions` holds size, source stride and target stride of each, outermost first, in bytes.
 * source: number of an input; MOVE_LITERAL for the element in the plan's head; -2 - i for output i. */
typedef struct move_record {
  int64_t source, target, unit, kind, rank, source_offset, target_offset;
  int64_t dimensions[][3];
} move_record;

#define MOVE_LITERAL (-1)

/* The head of a plan: number of moves, and the 16 bytes of the literal element; the records follow. */
typedef struct move_plan {
  int64_t count, literal[2];
} move_plan;

/* Runs one move between these two addresses. */
void move_box(tf_context *context, const move_record *record, const char *source, char *target);

static inline const move_record *move_first(const move_plan *plan) { return (const move_record *)(plan + 1); }
static inline const move_record *move_next(const move_record *record) {
  return (const move_record *)record->dimensions[record->rank];
}

#endif
