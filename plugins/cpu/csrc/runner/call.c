/* One kernel, called by itself: what tests use. */
#include "runner/floating_point.h"
#include "runner/runner.h"

int32_t tf_call_kernel(int64_t function, int64_t input_count, tf_tensor *inputs, int64_t output_count, tf_tensor *outputs,
                       const int64_t *parameters, int32_t thread_count, tf_error *error) {
  static const int32_t never = 0;
  const tf_tensor *in[input_count + 1];
  tf_tensor *out[output_count + 1];
  for (int64_t i = 0; i < input_count; i++) in[i] = &inputs[i];
  for (int64_t i = 0; i < output_count; i++) out[i] = &outputs[i];
  tf_context context;
  tf_context_init(&context, thread_count, &never, NULL, error);
  uint64_t mode = tf_set_floating_point();
  int32_t code = ((tf_kernel *)(intptr_t)function)(&context, in, out, parameters);
  tf_restore_floating_point(mode);
  error->code = code;
  return code;
}
