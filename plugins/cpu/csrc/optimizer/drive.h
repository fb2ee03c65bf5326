/* From tensors to rules: what all update ops share. */
#ifndef TIMBERFRAME_CPU_OPTIMIZER_DRIVE_H
#define TIMBERFRAME_CPU_OPTIMIZER_DRIVE_H

#include <string.h>

#include "common/half.h"
#include "common/lanes.h"
#include "common/table.h"
#include "indexing/index.h"
#include "optimizer_rules.h" /* made by generate.py */

enum { MOST_STATES = 4, MOST_SCALARS = 6, GRAIN = 16384, HALF_BLOCK = 256 };

/* The parameters, in this order: how many inputs are states (the first ones) and how many there are, which of them are
 * the gradient and the indices (-1 where the gradient is dense), and the rule's flag. All others are scalars. */
typedef struct update_shape {
  int64_t states, inputs, gradient, indices, flag;
} update_shape;

/* Reason 1: index {0} at position {1} is not below {2}. Checked before anything is written. */
static inline int32_t check_rows(tf_context *context, const tf_tensor *indices, int64_t limit) {
  for (int64_t i = 0; i < indices->size; i++) {
    const int64_t index = load_index(indices, i);
    if (index < 0 || index >= limit) return tf_fail(context, TF_INVALID_ARGUMENT, 1, index, i, limit, 0);
  }
  return TF_OK;
}

/* Everything for one storage type S that is computed in T. APPLY(job, in, out, gradient, count) applies job->rule to
 * `count` elements of type S. A sparse gradient changes one row after the other, in the order of the indices; threads
 * share the columns. */
#define UPDATE_DRIVER(NAME, S, T, LOAD, APPLY)                                                                       \
  typedef void rule_##NAME(const T *, int64_t, const T *const *, T *const *, const T *, int64_t);                    \
  typedef struct job_##NAME {                                                                                        \
    rule_##NAME *rule;                                                                                               \
    const update_shape *shape;                                                                                       \
    T scalars[MOST_SCALARS];                                                                                         \
    const S *in[MOST_STATES];                                                                                        \
    S *out[MOST_STATES];                                                                                             \
    const S *gradient;                                                                                               \
    const tf_tensor *indices;                                                                                        \
    int64_t inner;                                                                                                   \
  } job_##NAME;                                                                                                      \
  APPLY(NAME, S, T)                                                                                                  \
  static void dense_##NAME(void *argument, int64_t begin, int64_t end) {                                             \
    const job_##NAME *job = argument;                                                                                \
    apply_##NAME(job, job->in, job->out, begin, job->gradient + begin, end - begin);                                 \
  }                                                                                                                  \
  static void sparse_##NAME(void *argument, int64_t begin, int64_t end) {                                            \
    const job_##NAME *job = argument;                                                                                \
    const S *const own[MOST_STATES] = {job->out[0], job->out[1], job->out[2], job->out[3]};                          \
    for (int64_t i = 0; i < job->indices->size; i++) {                                                               \
      const int64_t at = load_index(job->indices, i) * job->inner + begin;                                           \
      apply_##NAME(job, own, job->out, at, job->gradient + i * job->inner + begin, end - begin);                     \
    }                                                                                                                \
  }                                                                                                                  \
  static int32_t drive_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,        \
                              const int64_t *parameters, rule_##NAME *rule) {                                        \
    const update_shape *shape = (const update_shape *)(const void *)parameters;                                      \
    job_##NAME job = {.rule = rule, .shape = shape, .gradient = inputs[shape->gradient]->data};                      \
    for (int64_t k = 0; k < shape->states; k++) job.in[k] = inputs[k]->data, job.out[k] = outputs[k]->data;          \
    for (int64_t k = shape->states, scalar = 0; k < shape->inputs; k++) {                                            \
      if (k == shape->gradient || k == shape->indices) continue;                                                     \
      job.scalars[scalar++] = inputs[k]->dtype == TF_INT64 ? (T)(float)*(const int64_t *)inputs[k]->data             \
                                                           : LOAD(*(const S *)inputs[k]->data);                      \
    }                                                                                                                \
    if (shape->indices < 0) {                                                                                        \
      context->parallel_for(context, inputs[0]->size, GRAIN, dense_##NAME, &job);                                    \
      return TF_OK;                                                                                                  \
    }                                                                                                                \
    job.indices = inputs[shape->indices];                                                                            \
    if (check_rows(context, job.indices, inputs[0]->shape[0])) return TF_INVALID_ARGUMENT;                           \
    for (int64_t k = 0; k < shape->states; k++) {                                                                    \
      if (job.out[k] != job.in[k]) memcpy(job.out[k], job.in[k], (size_t)inputs[0]->size * sizeof(S));               \
    }                                                                                                                \
    job.inner = inputs[0]->shape[0] ? inputs[0]->size / inputs[0]->shape[0] : 0;                                     \
    if (job.inner) context->parallel_for(context, job.inner, 1 + GRAIN / (job.indices->size + 1), sparse_##NAME, &job); \
    return TF_OK;                                                                                                    \
  }

/* APPLY for a type that is computed in itself. */
#define APPLY_AS_IT_IS(NAME, S, T)                                                                                   \
  static void apply_##NAME(const job_##NAME *job, const S *const *from, S *const *to, int64_t at, const S *gradient, \
                           int64_t count) {                                                                          \
    const T *in[MOST_STATES] = {0};                                                                                  \
    T *out[MOST_STATES] = {0};                                                                                       \
    for (int64_t k = 0; k < job->shape->states; k++) in[k] = from[k] + at, out[k] = to[k] + at;                      \
    job->rule(job->scalars, job->shape->flag, in, out, gradient, count);                                             \
  }

/* APPLY for 16-bit types: blocks are converted to float32 and back. */
#define APPLY_CONVERTED(NAME, S, T)                                                                                  \
  static void apply_##NAME(const job_##NAME *job, const S *const *from, S *const *to, int64_t at, const S *gradient, \
                           int64_t count) {                                                                          \
    T values[MOST_STATES][HALF_BLOCK], slope[HALF_BLOCK];                                                            \
    T *const out[MOST_STATES] = {values[0], values[1], values[2], values[3]};                                        \
    const T *const in[MOST_STATES] = {values[0], values[1], values[2], values[3]};                                   \
    for (int64_t i = 0; i < count; i += HALF_BLOCK) {                                                                \
      const int64_t n = count - i < HALF_BLOCK ? count - i : HALF_BLOCK;                                             \
      tf_float32_from_##NAME##_n(slope, gradient + i, n);                                                            \
      for (int64_t k = 0; k < job->shape->states; k++) tf_float32_from_##NAME##_n(values[k], from[k] + at + i, n);   \
      job->rule(job->scalars, job->shape->flag, in, out, slope, n);                                                  \
      for (int64_t k = 0; k < job->shape->states; k++) tf_##NAME##_from_float32_n(to[k] + at + i, values[k], n);     \
    }                                                                                                                \
  }

/* The kernel of one rule for one storage type; the rule is that of the computing type. */
#define UPDATE_KERNEL(RULE_NAME, NAME, COMPUTING)                                                                    \
  static int32_t RULE_NAME##_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,  \
                                    const int64_t *parameters) {                                                     \
    return drive_##NAME(context, inputs, outputs, parameters, RULE_NAME##_rule_##COMPUTING);                         \
  }

/* One entry of a table; with UPDATE_KERNEL for the macros of optimizer_rules.h, which lists the rules: NUMBER_RULES are
 * those of all numbers, REAL_RULES those of real ones. */
#define ENTER(RULE_NAME, NAME, ...) TF_ENTRY(RULE_NAME##_##NAME),

#endif
