/* The runner's interface to Python (native.cdef repeats it for cffi) and between its own sources. */
#ifndef TIMBERFRAME_CPU_RUNNER_H
#define TIMBERFRAME_CPU_RUNNER_H

#include <timberframe/kernel.h>

#include "common/blas.h"
#include "common/table.h"
#include "runner/program.h"

enum { TF_ISA_LEVEL_SCALAR = 0, TF_ISA_LEVEL_AVX2 = 1, TF_ISA_LEVEL_AVX512 = 2, TF_ISA_LEVEL_AMX = 3 };

/* The TF_ABI_MAJOR of the header that this was compiled with. */
TF_EXPORT int32_t tf_abi_major(void);

/* The best instruction set that processor and operating system offer. */
int32_t tf_best_isa(void);

/* Whether the processor has the instruction that multiplies pairs of bfloat16 and adds them to a float32. */
int32_t tf_multiplies_bfloat16(void);

/* The kernel of this name for `isa` or the next lower one that has it, which goes into `found`; NULL if none has. */
const tf_kernel_entry *tf_find_kernel(const char *name, int32_t isa, int32_t *found);

/* The address of that kernel as an integer, 0 if there is none. */
int64_t tf_kernel_address(const char *name, int32_t isa, int32_t *found);

/* Runs one kernel; returns its code, with the details in `error`. */
int32_t tf_call_kernel(int64_t function, int64_t input_count, tf_tensor *inputs, int64_t output_count, tf_tensor *outputs,
                       const int64_t *parameters, int32_t thread_count, tf_error *error);

/* tf_context's parallel_for, on the process's thread pool. */
void tf_parallel_for(tf_context *context, int64_t count, int64_t grain, tf_range *body, void *argument);

/* How many worker threads exist now in this process. */
int32_t tf_worker_count(void);

/* Readies a context for one run. */
static inline void tf_context_init(tf_context *context, int32_t thread_count, const volatile int32_t *cancel, void *runtime,
                                   tf_error *error) {
  *error = (tf_error){.struct_size = sizeof(tf_error)};
  *context = (tf_context){.struct_size = sizeof(tf_context),
                          .thread_count = thread_count,
                          .error = error,
                          .cancel = cancel,
                          .parallel_for = tf_parallel_for,
                          .runtime = runtime};
}

#endif
