/* Walks a tensor for any reducer: see reducer.h. */
#include "reduce/reducer.h"

enum { SHORT_ROW = 32, BATCH = 256, WORK_GRAIN = 1 << 15 };

/* The parameters of every reduction. A tensor of alternating kept and reduced runs ends in `rows` x `width` elements:
 * the innermost reduced run and the kept one below it. The runs above are listed by kind with their strides in
 * elements. */
typedef struct reduce_shape {
  int64_t width, rows;
  int64_t kept_rank, reduced_rank; /* runs above */
  int64_t reduced_count;           /* elements that make one result */
  int64_t segments;                /* parts into which the rows of one result are cut, so that threads can share them */
  int64_t outer_rows;              /* product of the reduced runs above */
  int64_t kept_count;              /* product of the kept runs above */
  int64_t dims[4 * TF_MAX_RANK];   /* kept sizes, kept strides, reduced sizes, reduced strides */
} reduce_shape;

typedef struct reduce_job {
  const reduce_shape *shape;
  const reducer *reducer;
  const char *input;
  char *output;
  char *partial;
} reduce_job;

static int64_t offset_of(int64_t index, int64_t rank, const int64_t *sizes, const int64_t *strides) {
  int64_t offset = 0;
  for (int64_t d = rank - 1; d > 0; d--) {
    offset += index % sizes[d] * strides[d];
    index /= sizes[d];
  }
  return rank > 0 ? offset + index * strides[0] : 0;
}

static int64_t kept_offset(const reduce_shape *s, int64_t index) {
  return offset_of(index, s->kept_rank, s->dims, s->dims + s->kept_rank);
}

/* Combines the flat range [begin, end) of rows into the accumulators of one tile of columns. */
static void reduce_rows(const reduce_job *job, void *accumulators, int64_t base, int64_t width, int64_t begin,
                        int64_t end) {
  const reduce_shape *s = job->shape;
  const int64_t *sizes = s->dims + 2 * s->kept_rank;
  while (begin < end) {
    const int64_t outer = begin / s->rows, first = begin - outer * s->rows;
    const int64_t rows = s->rows - first < end - begin ? s->rows - first : end - begin;
    const int64_t at = base + offset_of(outer, s->reduced_rank, sizes, sizes + s->reduced_rank) + first * s->width;
    job->reducer->panel(accumulators, job->input + at * job->reducer->element, rows, width, s->width);
    begin += rows;
  }
}

/* Results begin ... end of a tensor whose last dimension is reduced. */
static void reduce_lines(void *argument, int64_t begin, int64_t end) {
  const reduce_job *job = argument;
  const reduce_shape *s = job->shape;
  const reducer *r = job->reducer;
  _Alignas(64) char accumulators[BATCH * 16];
  for (; begin < end; begin += BATCH) {
    const int64_t count = end - begin < BATCH ? end - begin : BATCH;
    if (s->rows <= SHORT_ROW && s->kept_rank <= 1 && s->reduced_rank == 0) {
      r->short_rows(accumulators, job->input + begin * s->rows * r->element, count, s->rows);
    } else {
      r->start(accumulators, count);
      if (s->kept_rank <= 1 && s->reduced_rank == 0) { /* the common case, spared the divisions below */
        for (int64_t i = 0; i < count; i++) {
          r->panel(accumulators + i * r->accumulator, job->input + (begin + i) * s->rows * r->element, s->rows, 1, 1);
        }
        r->finish(job->output + begin * r->output, accumulators, count, s->reduced_count);
        continue;
      }
      for (int64_t i = 0; i < count; i++) {
        reduce_rows(job, accumulators + i * r->accumulator, kept_offset(s, begin + i), 1, 0, s->outer_rows * s->rows);
      }
    }
    r->finish(job->output + begin * r->output, accumulators, count, s->reduced_count);
  }
}

/* Tiles begin ... end: item i is tile i % tiles of the kept index i / tiles. */
static void reduce_tiles(void *argument, int64_t begin, int64_t end) {
  const reduce_job *job = argument;
  const reduce_shape *s = job->shape;
  const reducer *r = job->reducer;
  const int64_t tiles = (s->width + TILE - 1) / TILE;
  _Alignas(64) char accumulators[TILE * 16];
  for (int64_t item = begin; item < end; item++) {
    const int64_t kept = item / tiles, column = item % tiles * TILE;
    const int64_t width = s->width - column < TILE ? s->width - column : TILE;
    r->start(accumulators, width);
    reduce_rows(job, accumulators, kept_offset(s, kept) + column, width, 0, s->outer_rows * s->rows);
    r->finish(job->output + (kept * s->width + column) * r->output, accumulators, width, s->reduced_count);
  }
}

/* Segments begin ... end: item i is segment i % segments of tile i / segments; its accumulators go to the workspace. */
static void reduce_segments(void *argument, int64_t begin, int64_t end) {
  const reduce_job *job = argument;
  const reduce_shape *s = job->shape;
  const reducer *r = job->reducer;
  const int64_t tiles = (s->width + TILE - 1) / TILE, rows = s->outer_rows * s->rows;
  const int64_t step = (rows + s->segments - 1) / s->segments;
  for (int64_t item = begin; item < end; item++) {
    const int64_t tile = item / s->segments, segment = item % s->segments;
    const int64_t kept = tile / tiles, column = tile % tiles * TILE;
    const int64_t width = s->width - column < TILE ? s->width - column : TILE;
    const int64_t first = segment * step, last = first + step < rows ? first + step : rows;
    char *accumulators = job->partial + item * (s->width < TILE ? s->width : TILE) * r->accumulator;
    r->start(accumulators, width);
    reduce_rows(job, accumulators, kept_offset(s, kept) + column, width, first, last);
  }
}

static void join_segments(const reduce_job *job) {
  const reduce_shape *s = job->shape;
  const reducer *r = job->reducer;
  const int64_t tiles = (s->width + TILE - 1) / TILE;
  const int64_t bytes = (s->width < TILE ? s->width : TILE) * r->accumulator;
  for (int64_t tile = 0; tile < s->kept_count * tiles; tile++) {
    const int64_t kept = tile / tiles, column = tile % tiles * TILE;
    const int64_t width = s->width - column < TILE ? s->width - column : TILE;
    char *accumulators = job->partial + tile * s->segments * bytes;
    for (int64_t i = 1; i < s->segments; i++) r->combine(accumulators, accumulators + i * bytes, width);
    r->finish(job->output + (kept * s->width + column) * r->output, accumulators, width, s->reduced_count);
  }
}

int32_t reduce_run(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                   const int64_t *parameters, const reducer *reducer) {
  const reduce_shape *s = (const void *)parameters;
  reduce_job job = {s, reducer, inputs[0]->data, outputs[0]->data, NULL};
  const int64_t items = s->kept_count * ((s->width + TILE - 1) / TILE);
  if (items == 0) return TF_OK;
  if (s->segments > 1) {
    job.partial = outputs[1]->data;
    context->parallel_for(context, items * s->segments, 1, reduce_segments, &job);
    join_segments(&job);
    return TF_OK;
  }
  const int64_t rows = s->outer_rows * s->rows;
  const int64_t width = s->width < TILE ? s->width : TILE;
  const int64_t work = rows > 0 ? rows * width : width;
  const int64_t grain = work < WORK_GRAIN ? WORK_GRAIN / work : 1;
  context->parallel_for(context, items, grain, s->width == 1 ? reduce_lines : reduce_tiles, &job);
  return TF_OK;
}
