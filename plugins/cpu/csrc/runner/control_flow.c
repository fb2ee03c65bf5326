/* Loops and branches inside a program.
 *
 * A loop variable has two tensors: `state`, which condition and body read, and `next`, which the body writes. After each
 * iteration they swap memory, so nothing is copied while the loop runs but results that the body only passes on
 * (another loop variable, a constant). The first iteration reads the loop's own inputs; the node's output is the second buffer.
 *
 * A variable of which the body only overwrites rows has one memory, the node's output, and its input is copied there. */
#include <stdbool.h>
#include <string.h>

#include "runner/program.h"

/* Parameters of tf_while, as words: a header and one record for each loop variable. */
typedef struct loop_variable {
  tf_tensor *state;
  tf_tensor *next;         /* NULL: the variable never changes */
  const tf_tensor *source; /* what to copy into `next` after the body; NULL: the body writes it */
  void *buffer;            /* first memory of `next` */
  int64_t nbytes;
  int64_t in_place; /* the body changes `state` itself */
} loop_variable;

typedef struct loop {
  int64_t count;
  const tf_step *condition;
  const tf_step *condition_end;
  const tf_step *body;
  const tf_step *body_end;
  const tf_tensor *predicate;
  loop_variable variables[];
} loop;

/* A copy that ends a branch: a result that no node of the branch writes into the output itself. */
typedef struct branch_copy {
  const tf_tensor *source;
  int64_t output;
  int64_t nbytes;
} branch_copy;

typedef struct branch {
  const tf_step *steps;
  const tf_step *end;
  const branch_copy *copies;
  int64_t copy_count;
} branch;

/* Parameters of tf_if (the branch for true, then that for false) and of tf_case. */
typedef struct choice {
  int64_t count;
  branch branches[];
} choice;

static bool any_bit(const tf_tensor *tensor, int64_t nbytes) {
  const uint8_t *bytes = tensor->data;
  for (int64_t i = 0; i < nbytes; i++) {
    if (bytes[i]) return true;
  }
  return false;
}

/* TensorFlow's rule: a 0-d value is true unless it is zero, any other unless it has no elements. */
static bool is_true(const tf_tensor *tensor) {
  if (tensor->rank) return tensor->size != 0;
  switch (tensor->dtype) {
    case TF_FLOAT32: return *(const float *)tensor->data != 0;
    case TF_FLOAT64: return *(const double *)tensor->data != 0;
    case TF_COMPLEX64: return ((const float *)tensor->data)[0] != 0 || ((const float *)tensor->data)[1] != 0;
    case TF_COMPLEX128: return ((const double *)tensor->data)[0] != 0 || ((const double *)tensor->data)[1] != 0;
    case TF_FLOAT16:
    case TF_BFLOAT16: return (*(const uint16_t *)tensor->data & 0x7fff) != 0;
    case TF_INT64:
    case TF_UINT64: return any_bit(tensor, 8);
    case TF_INT32:
    case TF_UINT32: return any_bit(tensor, 4);
    case TF_INT16:
    case TF_UINT16: return any_bit(tensor, 2);
    default: return any_bit(tensor, 1);
  }
}

/* Hands the results of an iteration to the next one. */
static void hand_over(const loop *l, tf_tensor *const *outputs, bool first) {
  for (int64_t i = 0; i < l->count; i++) {
    const loop_variable *v = &l->variables[i];
    if (v->source && v->nbytes) memcpy(v->next->data, v->source->data, (size_t)v->nbytes);
  }
  for (int64_t i = 0; i < l->count; i++) {
    const loop_variable *v = &l->variables[i];
    if (!v->next) continue;
    void *old = v->state->data;
    v->state->data = v->next->data;
    v->next->data = first ? outputs[i]->data : old;
  }
}

static int32_t run_loop(tf_program *program, const loop *l, tf_tensor *const *outputs) {
  for (bool first = true;; first = false) {
    int32_t code = tf_run_steps(program, l->condition, l->condition_end);
    if (code) return code;
    if (!is_true(l->predicate)) return TF_OK;
    code = tf_run_steps(program, l->body, l->body_end);
    if (code) return code;
    hand_over(l, outputs, first);
    if (--program->budget < 0 && tf_poll(program)) return TF_CANCELLED;
    if (tf_cancelled(&program->context)) return TF_CANCELLED;
  }
}

int32_t tf_while(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                 const int64_t *parameters) {
  const loop *l = (const loop *)parameters;
  for (int64_t i = 0; i < l->count; i++) {
    const loop_variable *v = &l->variables[i];
    v->state->data = v->in_place ? outputs[i]->data : inputs[i]->data;
    if (v->in_place && v->nbytes) memcpy(v->state->data, inputs[i]->data, (size_t)v->nbytes);
    if (v->next) v->next->data = v->buffer;
  }
  int32_t code = run_loop(context->runtime, l, outputs);
  if (code) return code;
  for (int64_t i = 0; i < l->count; i++) {
    const loop_variable *v = &l->variables[i];
    if (outputs[i]->data != v->state->data && v->nbytes) memcpy(outputs[i]->data, v->state->data, (size_t)v->nbytes);
  }
  return TF_OK;
}

static int32_t run_branch(tf_context *context, const branch *b, tf_tensor *const *outputs) {
  int32_t code = tf_run_steps(context->runtime, b->steps, b->end);
  if (code) return code;
  for (int64_t i = 0; i < b->copy_count; i++) {
    const branch_copy *c = &b->copies[i];
    if (c->nbytes) memcpy(outputs[c->output]->data, c->source->data, (size_t)c->nbytes);
  }
  return TF_OK;
}

int32_t tf_if(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
              const int64_t *parameters) {
  const choice *c = (const choice *)parameters;
  return run_branch(context, &c->branches[is_true(inputs[0]) ? 0 : 1], outputs);
}

int32_t tf_case(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                const int64_t *parameters) {
  const choice *c = (const choice *)parameters;
  int64_t index = *(const int32_t *)inputs[0]->data;
  return run_branch(context, &c->branches[index >= 0 && index < c->count ? index : c->count - 1], outputs);
}
