/* A kernel whose loop was compiled elsewhere, from the source of an op: timberframe_cpu/kernels/generated.py. */
#include "common/broadcast.h"

/* parameters: those of broadcast.h, then the address of the loop, a tf_loop, and its number of operands */
static int32_t elementwise_loop(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                const int64_t *parameters) {
  const int64_t *own = tf_own_parameters(parameters);
  return tf_broadcast(context, inputs, outputs, parameters, (int32_t)own[1], (tf_loop *)(intptr_t)own[0]);
}

TF_TABLE(elementwise) = {TF_ENTRY(elementwise_loop), TF_END};
