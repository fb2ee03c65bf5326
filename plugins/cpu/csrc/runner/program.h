/* A program: the steps of one cluster, ready to run.
 *
 * Python lays out tensors, pointer lists, parameters and steps as one block of int64 words with addresses filled in (see
 * image.py); these structs are what that block holds. A program serves one run at a time. */
#ifndef TIMBERFRAME_CPU_PROGRAM_H
#define TIMBERFRAME_CPU_PROGRAM_H

#include <timberframe/kernel.h>

/* One kernel launch. weight: about how long it takes, in units of a small kernel; decides when to look at the clock.
 * TF_WHOLE is added where the kernel overwrites a variable: once begun, cancelling must not leave it half done. */
#define TF_WHOLE ((int64_t)1 << 60)
typedef struct tf_step {
  tf_kernel *function;
  const tf_tensor *const *inputs;
  tf_tensor *const *outputs;
  const int64_t *parameters;
  int64_t node;
  int64_t weight;
} tf_step;

/* A tensor whose memory the caller of a run gives: its number, and the bits that are zero in an aligned address. */
typedef struct tf_slot {
  int32_t tensor;
  int32_t misaligned;
} tf_slot;

typedef struct tf_program {
  tf_context context; /* its `runtime` is the program */
  const tf_step *steps;
  tf_tensor *tensors;
  const tf_slot *slots;
  int64_t step_count;
  int64_t slot_count;
  int64_t budget;  /* weight that may still pass before the clock is looked at */
  int64_t poll_at; /* nanoseconds of the clock at which Python is to see to its signals; 0: not known yet */
  int32_t own_cancel;
  tf_error error; /* what `context` points to; after what every step reads */
} tf_program;

/* Negative codes tell the caller that nothing was run: -1 - slot is misaligned. */
enum { TF_MISALIGNED = -1 };

/* What tf_error.reason holds when a Python kernel raised; the exception waits in Python. */
enum { TF_PYTHON_RAISED = -1 };

void tf_program_init(tf_program *program, int64_t steps, int64_t step_count, int64_t tensors, int64_t slots,
                     int64_t slot_count, int32_t thread_count);

/* Gives the slots their memory; returns 0 or a negative code. */
int32_t tf_bind(tf_program *program, void *const *data);

/* Runs the steps [begin, end) of the top level. cancel: the word to poll, NULL for one of the program's own. times: NULL,
 * or room for the nanoseconds of a clock before the first step and after each that was done. */
int32_t tf_run_range(tf_program *program, int64_t begin, int64_t end, const int32_t *cancel, int64_t *times);

/* tf_bind and tf_run_range of everything. */
int32_t tf_run(tf_program *program, void *const *data, const int32_t *cancel);

/* tf_run with the slots as arguments, unused ones NULL: what a generated call of a small plan uses. */
int32_t tf_run2(tf_program *program, void *a, void *b);
int32_t tf_run3(tf_program *program, void *a, void *b, void *c);
int32_t tf_run4(tf_program *program, void *a, void *b, void *c, void *d);
int32_t tf_run8(tf_program *program, void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h);

/* Runs steps one after the other inside a run; used by loops and branches. */
int32_t tf_run_steps(tf_program *program, const tf_step *step, const tf_step *end);

/* Lets Python see to its signals if this is its main thread and 50 ms have passed. Not 0: the run was cancelled. */
int tf_poll(tf_program *program);

/* Tells which thread Python takes signals in, as its `threading.get_ident` numbers it. */
void tf_set_main_thread(uint64_t thread);

/* The kernels of loops, branches and Python launchers; Python puts their addresses into steps. */
int32_t tf_while(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, const int64_t *parameters);
int32_t tf_if(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, const int64_t *parameters);
int32_t tf_case(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                const int64_t *parameters);
int32_t tf_python(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                  const int64_t *parameters);
int64_t tf_while_address(void);
int64_t tf_if_address(void);
int64_t tf_case_address(void);
int64_t tf_python_address(void);

/* Called by the runner, written in Python (extern "Python+C" in native.cdef). */
int32_t tf_python_signals(void);
int32_t tf_python_launch(int64_t handle, void *inputs, void *outputs);

static inline int tf_cancelled(const tf_context *context) { return __atomic_load_n(context->cancel, __ATOMIC_RELAXED) != 0; }

#endif
