/* Entry points of kernels: they bring the tensors into NHWC and the computing type, run, and bring the result back. */
#ifndef TIMBERFRAME_CPU_CONV_ENTRY_H
#define TIMBERFRAME_CPU_CONV_ENTRY_H

#include "conv/layout.h"
#include "conv/shape.h"

/* The kernel KERNEL##_##NAME for elements of the type T (float for 16-bit floats) that RUN##_##COMPUTE computes.
 * FROM and TO say which side of the convolution is read and which one made: `input` or `output`; IMAGES, which of
 * the two inputs has the images, the other one having the filter. */
#define ENTRY(KERNEL, RUN, NAME, T, COMPUTE, FROM, TO, IMAGES)                                                   \
  static int32_t KERNEL##_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                 const int64_t *parameters) {                                                    \
    const conv_shape *s = (const conv_shape *)parameters;                                                        \
    if (!outputs[0]->size) return TF_OK;                                                                         \
    image_shape from = FROM##_images(s), to = TO##_images(s), taps = {1, 1, 1, inputs[1 - IMAGES]->size, 0};     \
    char *workspace = outputs[1]->data;                                                                          \
    const T *images = bring_##NAME(context, inputs[IMAGES]->data, workspace + s->FROM##_at, &from);              \
    const T *filter = bring_##NAME(context, inputs[1 - IMAGES]->data, workspace + s->filter_at, &taps);          \
    T *results = destination_##NAME(outputs[0]->data, workspace + s->TO##_at, &to);                              \
    RUN##_##COMPUTE(context, s, images, filter, results, workspace);                                             \
    give_##NAME(context, results, outputs[0]->data, &to);                                                        \
    return TF_OK;                                                                                                \
  }

/* KERNEL##ed_<type>: the same with a filter that KERNEL##_<type> has brought into the computing type and packed. */
#define PACKED(KERNEL, PACK, RUN, NAME, T, COMPUTE, FROM, TO, IMAGES)                                               \
  static int32_t KERNEL##_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                 const int64_t *parameters) {                                                       \
    const conv_shape *s = (const conv_shape *)parameters;                                                           \
    image_shape taps = {1, 1, 1, inputs[0]->size, 0};                                                               \
    const T *filter = bring_##NAME(context, inputs[0]->data, outputs[1]->data, &taps);                              \
    PACK##_##COMPUTE(context, s, filter, outputs[0]->data);                                                         \
    return TF_OK;                                                                                                   \
  }                                                                                                                 \
  static int32_t KERNEL##ed_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,  \
                                   const int64_t *parameters) {                                                     \
    const conv_shape *s = (const conv_shape *)parameters;                                                           \
    if (!outputs[0]->size) return TF_OK;                                                                            \
    image_shape from = FROM##_images(s), to = TO##_images(s);                                                       \
    char *workspace = outputs[1]->data;                                                                             \
    const T *images = bring_##NAME(context, inputs[IMAGES]->data, workspace + s->FROM##_at, &from);                 \
    T *results = destination_##NAME(outputs[0]->data, workspace + s->TO##_at, &to);                                 \
    RUN##_##COMPUTE(context, s, images, NULL, inputs[1 - IMAGES]->data, results, workspace);                        \
    give_##NAME(context, results, outputs[0]->data, &to);                                                           \
    return TF_OK;                                                                                                   \
  }

#define FORWARD(KERNEL, RUN, NAME, T, COMPUTE) ENTRY(KERNEL, RUN, NAME, T, COMPUTE, input, output, 0)
#define BACKWARD(KERNEL, RUN, NAME, T, COMPUTE) ENTRY(KERNEL, RUN, NAME, T, COMPUTE, output, input, 1)
#define PACKED_FORWARD(NAME, T, COMPUTE) PACKED(conv2d_pack, pack_filter, run_forward, NAME, T, COMPUTE, input, output, 0)
#define PACKED_BACKWARD(NAME, T, COMPUTE) \
  PACKED(conv2d_input_pack, pack_phases, run_backward, NAME, T, COMPUTE, output, input, 1)

#endif
