/* A chain of elementwise kernels run block by block, so that what passes between them stays in the first cache.
 *
 * Parameters, in int64 words:
 *   [0] steps  [1] values  [2] outer dimensions  [3] elements of a block  [4] elements of the inner dimension
 *   [5] elements of the result  [6] grain of parallel_for, in blocks  [7] position of the first step
 *   [8] address of a cell with the address of the chain compiled as one tf_fused, 0 while there is none; or 0
 *   [9] blocks of one result where the last step reduces each block to a partial result, else 0; then
 *   [10] the function that reduces these to a result, and [11] the position of its parameters
 *   then for each value: kind (enum), position among inputs or outputs or offset in the scratch memory, bytes of an
 *     element, dtype, 1 if it moves along the inner dimension, its stride in elements for each outer dimension
 *   then the size of each outer dimension, the innermost first
 *   then for each step: function, positions of its parameters for a whole block and for the last one of an inner run,
 *     number of inputs, the values that it reads, the value that it makes
 * Partial results lie in the workspace after the only output, in the order of blocks. Any other result is dense;
 * element i of it depends on element i of what is dense, so it may lie over an input that is read no later than the
 * result is written. */
#include "common/table.h"

enum { VALUES = 128, SCRATCH = 48 * 1024, HEAD = 12, VALUE_WORDS = 5, STEP_INPUTS = 3 };
enum { COMPILED_BLOCK = 16 * 1024, JOIN_GRAIN = 1024, LINE = 64 };
enum { FAR_BYTES = 16 << 20 }; /* of all that a chain reads and writes, where fetching ahead is worth it; measured */
enum kind { INPUT, OUTPUT, TEMPORARY, PARTIAL };

/* `count` elements of a chain: what stands still has one element for all. A chain that ends in a reduction writes a
 * partial result for each block of parameters[3] elements. */
typedef void tf_fused(const void *const *in, void *const *out, int64_t count);

typedef struct blocks {
  tf_context *context;
  const tf_tensor *const *inputs;
  tf_tensor *const *outputs;
  const int64_t *parameters;
  tf_fused *compiled;
  int64_t size; /* elements of a block */
  int far;      /* at least FAR_BYTES */
} blocks;

/* Bytes of what moves along the inner dimension, but for temporaries. */
static int64_t moved_bytes(const int64_t *p) {
  const int64_t *value = p + HEAD;
  int64_t bytes = 0;
  for (int64_t k = 0; k < p[1]; k++, value += VALUE_WORDS + p[2]) {
    if (value[4] && value[0] != TEMPORARY) bytes += p[5] * value[2];
  }
  return bytes;
}

static void set_tensors(const blocks *b, tf_tensor *tensors, char *scratch) {
  const int64_t *p = b->parameters, *value = p + HEAD;
  for (int64_t k = 0; k < p[1]; k++, value += VALUE_WORDS + p[2]) {
    tensors[k] = (tf_tensor){.struct_size = sizeof(tf_tensor), .dtype = (int32_t)value[3], .size = 1};
    tensors[k].rank = value[4] ? 1 : 0;
    tensors[k].strides[0] = 1;
    if (value[0] == TEMPORARY) tensors[k].data = scratch + value[1];
  }
}

/* Points every value at its part of one block of `count` elements: `column` elements into inner run `run`. */
static void move_tensors(const blocks *b, tf_tensor *tensors, int64_t run, int64_t column, int64_t count) {
  const int64_t *p = b->parameters, *value = p + HEAD;
  const int64_t *outer = value + p[1] * (VALUE_WORDS + p[2]);
  for (int64_t k = 0; k < p[1]; k++, value += VALUE_WORDS + p[2]) {
    if (value[4]) tensors[k].size = tensors[k].shape[0] = count;
    if (value[0] == TEMPORARY) continue;
    if (value[0] == PARTIAL) {
      const int64_t block_index = run * ((p[4] + p[3] - 1) / p[3]) + column / p[3];
      tensors[k].data = (char *)b->outputs[1]->data + block_index * value[2];
      continue;
    }
    int64_t offset = value[4] ? column : 0;
    for (int64_t d = 0, left = run; d < p[2]; left /= outer[d], d++) offset += left % outer[d] * value[VALUE_WORDS + d];
    char *base = value[0] == INPUT ? b->inputs[value[1]]->data : b->outputs[value[1]]->data;
    tensors[k].data = base + offset * value[2];
  }
}

/* Fetches one share of what the next block reads and writes, if it lies after this one, into the second cache level.
 * Inlined always: GCC 12 drops calls of a function that does nothing but fetch. */
static inline __attribute__((always_inline)) void fetch_next(const blocks *b, const tf_tensor *tensors, int64_t share,
                                                             int64_t shares) {
  const int64_t *p = b->parameters, *value = p + HEAD;
  for (int64_t k = 0; k < p[1]; k++, value += VALUE_WORDS + p[2]) {
    if (!value[4] || value[0] == TEMPORARY) continue;
    const int64_t bytes = tensors[k].size * value[2], end = bytes * (share + 1) / shares;
    const char *next = (const char *)tensors[k].data + bytes;
    for (int64_t i = bytes * share / shares / LINE * LINE; i < end; i += LINE) __builtin_prefetch(next + i, 0, 2);
  }
}

/* Only kernels that cannot fail are fused, so that nobody looks at their codes. */
static void run_steps(const blocks *b, tf_tensor *tensors, int whole) {
  const int64_t *p = b->parameters, *step = p + p[7];
  for (int64_t s = 0; s < p[0]; s++) {
    if (b->far) fetch_next(b, tensors, s, p[0]);
    const tf_tensor *in[STEP_INPUTS] = {NULL};
    for (int64_t i = 0; i < step[3]; i++) in[i] = &tensors[step[4 + i]];
    tf_tensor *out[1] = {&tensors[step[4 + step[3]]]};
    ((tf_kernel *)(intptr_t)step[0])(b->context, in, out, p + step[whole ? 1 : 2]);
    step += 5 + step[3];
  }
}

static void run_compiled(const blocks *b, const tf_tensor *tensors, int64_t count) {
  const void *in[VALUES] = {NULL};
  void *out[VALUES] = {NULL};
  const int64_t *value = b->parameters + HEAD;
  for (int64_t k = 0; k < b->parameters[1]; k++, value += VALUE_WORDS + b->parameters[2]) {
    if (value[0] == INPUT) in[value[1]] = tensors[k].data;
    if (value[0] == OUTPUT || value[0] == PARTIAL) out[value[1]] = tensors[k].data;
  }
  b->compiled(in, out, count);
}

static void run_blocks(void *argument, int64_t begin, int64_t end) {
  const blocks *b = argument;
  const int64_t size = b->size, inner = b->parameters[4], in_run = (inner + size - 1) / size;
  _Alignas(TF_ALIGNMENT) char scratch[SCRATCH];
  tf_tensor tensors[VALUES];
  set_tensors(b, tensors, scratch);
  for (int64_t block = begin; block < end; block++) {
    const int64_t column = block % in_run * size, count = inner - column < size ? inner - column : size;
    move_tensors(b, tensors, block / in_run, column, count);
    if (b->compiled) {
      run_compiled(b, tensors, count);
    } else {
      run_steps(b, tensors, count == size);
    }
  }
}

/* Results begin ... end from their partial results. */
static void join_partials(void *argument, int64_t begin, int64_t end) {
  const blocks *b = argument;
  const int64_t *p = b->parameters;
  tf_tensor partial = {.struct_size = sizeof(tf_tensor), .rank = 1, .size = p[9], .shape = {p[9]}, .strides = {1}};
  tf_tensor result = {.struct_size = sizeof(tf_tensor), .size = 1};
  partial.dtype = result.dtype = b->outputs[0]->dtype;
  const tf_tensor *in[1] = {&partial};
  tf_tensor *out[1] = {&result};
  const int64_t itemsize = b->parameters[HEAD + (p[1] - 1) * (VALUE_WORDS + p[2]) + 2]; /* of the last value */
  for (int64_t i = begin; i < end; i++) {
    partial.data = (char *)b->outputs[1]->data + i * p[9] * itemsize;
    result.data = (char *)b->outputs[0]->data + i * itemsize;
    ((tf_kernel *)(intptr_t)p[10])(b->context, in, out, p + p[11]);
  }
}

static int32_t elementwise_blocks(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                  const int64_t *parameters) {
  const int64_t *cell = (const int64_t *)(intptr_t)parameters[8], inner = parameters[4];
  blocks b = {context, inputs, outputs, parameters, NULL, parameters[3], moved_bytes(parameters) >= FAR_BYTES};
  int64_t grain = parameters[6];
  if (cell) b.compiled = (tf_fused *)(intptr_t)__atomic_load_n(cell, __ATOMIC_ACQUIRE);
  if (b.compiled) {
    b.size = inner < COMPILED_BLOCK ? inner : COMPILED_BLOCK; /* whole blocks of parameters[3] elements, but the last */
    grain = 1 + COMPILED_BLOCK / b.size;
  }
  const int64_t count = parameters[5] / inner * ((inner + b.size - 1) / b.size);
  if (count <= grain) {
    run_blocks(&b, 0, count);
  } else {
    context->parallel_for(context, count, grain, run_blocks, &b);
  }
  if (parameters[9]) context->parallel_for(context, outputs[0]->size, JOIN_GRAIN, join_partials, &b);
  return TF_OK;
}

TF_TABLE(runner_blocks) = {TF_ENTRY(elementwise_blocks), TF_END};
