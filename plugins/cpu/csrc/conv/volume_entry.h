/* Entry points of convolutions of volumes and their gradients; see conv/volumes.h. */
#ifndef TIMBERFRAME_CPU_CONV_VOLUME_ENTRY_H
#define TIMBERFRAME_CPU_CONV_VOLUME_ENTRY_H

#include "conv/volumes.h"

#define ROW_GRAIN 16 /* rows of images that are worth a thread */

#define VOLUME_START                                                  \
  if (!outputs[0]->size) return TF_OK;                                \
  const volume_conv *v = (const volume_conv *)parameters;             \
  const conv_shape *s = &v->plane.conv;                               \
  image_shape inside = input_volumes(v), outside = output_volumes(v); \
  char *workspace = outputs[1]->data

/* T is the computing type of the elements NAME, and COMPUTE its name. */
#define VOLUME_FORWARD(NAME, T, COMPUTE)                                                                       \
  static int32_t conv3d_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                               const int64_t *parameters) {                                                    \
    VOLUME_START;                                                                                              \
    image_shape taps = {1, 1, 1, inputs[1]->size, 0};                                                          \
    T *filter = (T *)(workspace + v->filter_at);                                                               \
    volume_job job = {v, bring_##NAME(context, inputs[0]->data, workspace + v->volume_at, &inside),            \
                      workspace + v->images_at};                                                               \
    taps_##COMPUTE(v, bring_##NAME(context, inputs[1]->data, workspace + s->filter_at, &taps), filter);        \
    context->parallel_for(context, s->batch * v->plane.height, ROW_GRAIN, images_##COMPUTE, &job);             \
    T *results = destination_##NAME(outputs[0]->data, workspace + v->gradient_at, &outside);                   \
    run_##COMPUTE(context, s, job.to, filter, results, workspace);                                             \
    give_##NAME(context, results, outputs[0]->data, &outside);                                                 \
    return TF_OK;                                                                                              \
  }

/* The same with a filter that conv2d_pack_<type> has packed, its taps along the depth beside its channels. */
#define VOLUME_PACKED(NAME, T, COMPUTE)                                                                               \
  static int32_t conv3d_packed_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                      const int64_t *parameters) {                                                    \
    VOLUME_START;                                                                                                     \
    volume_job job = {v, bring_##NAME(context, inputs[0]->data, workspace + v->volume_at, &inside),                   \
                      workspace + v->images_at};                                                                      \
    context->parallel_for(context, s->batch * v->plane.height, ROW_GRAIN, images_##COMPUTE, &job);                    \
    T *results = destination_##NAME(outputs[0]->data, workspace + v->gradient_at, &outside);                          \
    run_forward_##COMPUTE(context, s, job.to, NULL, inputs[1]->data, results, workspace);                             \
    give_##NAME(context, results, outputs[0]->data, &outside);                                                        \
    return TF_OK;                                                                                                     \
  }

#define VOLUME_INPUT(NAME, T, COMPUTE)                                                                               \
  static int32_t conv3d_input_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                     const int64_t *parameters) {                                                    \
    VOLUME_START;                                                                                                    \
    image_shape taps = {1, 1, 1, inputs[0]->size, 0};                                                                \
    T *filter = (T *)(workspace + v->filter_at), *images = (T *)(workspace + v->images_at);                          \
    const T *gradient = bring_##NAME(context, inputs[1]->data, workspace + v->gradient_at, &outside);                \
    taps_##COMPUTE(v, bring_##NAME(context, inputs[0]->data, workspace + s->filter_at, &taps), filter);              \
    run_input_##COMPUTE(context, s, gradient, filter, images, workspace);                                            \
    volume_job job = {v, images, destination_##NAME(outputs[0]->data, workspace + v->volume_at, &inside)};           \
    context->parallel_for(context, v->batch * v->depth * v->height, ROW_GRAIN, volumes_##COMPUTE, &job);             \
    give_##NAME(context, job.to, outputs[0]->data, &inside);                                                         \
    return TF_OK;                                                                                                    \
  }

#define VOLUME_FILTER(NAME, T, COMPUTE)                                                                               \
  static int32_t conv3d_filter_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                      const int64_t *parameters) {                                                    \
    VOLUME_START;                                                                                                     \
    image_shape taps = {1, 1, 1, outputs[0]->size, 0};                                                                \
    T *filter = (T *)(workspace + v->filter_at);                                                                      \
    T *results = destination_##NAME(outputs[0]->data, workspace + s->filter_at, &taps);                               \
    memset(filter, 0, (size_t)outputs[0]->size * sizeof(T));                                                          \
    if (inputs[1]->size) {                                                                                            \
      volume_job job = {v, bring_##NAME(context, inputs[0]->data, workspace + v->volume_at, &inside),                 \
                        workspace + v->images_at};                                                                    \
      context->parallel_for(context, s->batch * v->plane.height, ROW_GRAIN, images_##COMPUTE, &job);                  \
      const T *gradient = bring_##NAME(context, inputs[1]->data, workspace + v->gradient_at, &outside);               \
      run_filter_##COMPUTE(context, &v->plane, job.to, gradient, filter, workspace);                                  \
    }                                                                                                                 \
    depths_##COMPUTE(v, filter, results);                                                                             \
    give_##NAME(context, results, outputs[0]->data, &taps);                                                           \
    return TF_OK;                                                                                                     \
  }

#endif
