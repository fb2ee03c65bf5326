/* Running programs. */
#include "runner/program.h"

#include <stddef.h>

#include "common/platform.h"
#include "runner/floating_point.h"
#include "runner/runner.h"

enum { BUDGET = 2000, POLL_INTERVAL = 50 * 1000 * 1000 };

static uint64_t main_thread;

void tf_set_main_thread(uint64_t thread) { main_thread = thread; }

int tf_poll(tf_program *program) {
  program->budget = BUDGET;
  if (platform_thread() != main_thread) return tf_cancelled(&program->context);
  int64_t time = platform_nanoseconds();
  if (program->poll_at == 0) program->poll_at = time + POLL_INTERVAL;
  if (time >= program->poll_at) {
    if (tf_python_signals()) {
      __atomic_store_n((int32_t *)program->context.cancel, 1, __ATOMIC_RELAXED);
      program->error.reason = TF_PYTHON_RAISED;
    }
    program->poll_at = platform_nanoseconds() + POLL_INTERVAL;
  }
  return tf_cancelled(&program->context);
}

static int32_t stop(tf_program *program, int32_t code, int64_t node) {
  tf_error *error = &program->error;
  if (error->node < 0) {
    error->node = node;
    error->code = code;
  }
  return code;
}

static int32_t launch(tf_context *context, const tf_step *step) {
  return step->function(context, step->inputs, step->outputs, step->parameters);
}

/* Runs a step that cancelling must not cut short. */
static int32_t launch_whole(tf_context *context, const tf_step *step) {
  static const int32_t never = 0;
  const volatile int32_t *cancel = context->cancel;
  context->cancel = &never;
  context->runtime = NULL; /* so that parallel_for does not poll */
  int32_t code = launch(context, step);
  context->runtime = (char *)context - offsetof(tf_program, context);
  context->cancel = cancel;
  return code;
}

int32_t tf_run_steps(tf_program *program, const tf_step *step, const tf_step *end) {
  tf_context *context = &program->context;
  if (tf_cancelled(context) && step < end) return stop(program, TF_CANCELLED, step->node);
  for (; step < end; step++) {
    int32_t code;
    if (__builtin_expect((program->budget -= step->weight) < 0, 0)) {
      if (tf_poll(program)) return stop(program, TF_CANCELLED, step->node);
      code = step->weight >= TF_WHOLE ? launch_whole(context, step) : launch(context, step);
    } else {
      code = launch(context, step);
    }
    if (__builtin_expect(code, 0)) return stop(program, code, step->node);
    /* A kernel whose parallel_for stopped early does not know: its outputs are not to be used. */
    if (__builtin_expect(tf_cancelled(context), 0) && step->weight < TF_WHOLE) {
      return stop(program, TF_CANCELLED, step->node);
    }
  }
  return TF_OK;
}

void tf_program_init(tf_program *program, int64_t steps, int64_t step_count, int64_t tensors, int64_t slots,
                     int64_t slot_count, int32_t thread_count) {
  *program = (tf_program){.steps = (const tf_step *)(intptr_t)steps,
                          .tensors = (tf_tensor *)(intptr_t)tensors,
                          .slots = (const tf_slot *)(intptr_t)slots,
                          .step_count = step_count,
                          .slot_count = slot_count};
  tf_context_init(&program->context, thread_count, &program->own_cancel, program, &program->error);
}

static inline int32_t bind(tf_program *program, void *const *data) {
  for (int64_t i = 0; i < program->slot_count; i++) {
    tf_slot slot = program->slots[i];
    if ((intptr_t)data[i] & slot.misaligned) return TF_MISALIGNED - (int32_t)i;
    program->tensors[slot.tensor].data = data[i];
  }
  return TF_OK;
}

int32_t tf_bind(tf_program *program, void *const *data) { return bind(program, data); }

/* Runs steps and notes the clock before the first and after each. */
static int32_t run_timed_steps(tf_program *program, const tf_step *step, const tf_step *end, int64_t *times) {
  *times++ = platform_nanoseconds();
  for (; step < end; step++) {
    int32_t code = tf_run_steps(program, step, step + 1);
    if (code) return code;
    *times++ = platform_nanoseconds();
  }
  return TF_OK;
}

static inline int32_t run_range(tf_program *program, int64_t begin, int64_t end, const int32_t *cancel,
                                int64_t *times) {
  program->own_cancel = 0;
  program->context.cancel = cancel ? cancel : &program->own_cancel;
  program->error.reason = 0;
  program->error.node = -1;
  program->budget = BUDGET;
  program->poll_at = 0;
  uint64_t mode = tf_set_floating_point();
  const tf_step *first = program->steps + begin, *last = program->steps + end;
  int32_t code = times ? run_timed_steps(program, first, last, times) : tf_run_steps(program, first, last);
  tf_restore_floating_point(mode);
  return code;
}

int32_t tf_run_range(tf_program *program, int64_t begin, int64_t end, const int32_t *cancel, int64_t *times) {
  return run_range(program, begin, end, cancel, times);
}

int32_t tf_run(tf_program *program, void *const *data, const int32_t *cancel) {
  int32_t code = bind(program, data);
  return code ? code : run_range(program, 0, program->step_count, cancel, NULL);
}

int32_t tf_run2(tf_program *program, void *a, void *b) { return tf_run(program, (void *[]){a, b}, NULL); }

int32_t tf_run3(tf_program *program, void *a, void *b, void *c) { return tf_run(program, (void *[]){a, b, c}, NULL); }

int32_t tf_run4(tf_program *program, void *a, void *b, void *c, void *d) {
  return tf_run(program, (void *[]){a, b, c, d}, NULL);
}

int32_t tf_run8(tf_program *program, void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h) {
  return tf_run(program, (void *[]){a, b, c, d, e, f, g, h}, NULL);
}

int32_t tf_python(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                  const int64_t *parameters) {
  if (tf_python_launch(parameters[0], (void *)inputs, (void *)outputs) == 0) return TF_OK;
  context->error->reason = TF_PYTHON_RAISED;
  return TF_INTERNAL;
}

int64_t tf_while_address(void) { return (int64_t)(intptr_t)tf_while; }
int64_t tf_if_address(void) { return (int64_t)(intptr_t)tf_if; }
int64_t tf_case_address(void) { return (int64_t)(intptr_t)tf_case; }
int64_t tf_python_address(void) { return (int64_t)(intptr_t)tf_python; }
