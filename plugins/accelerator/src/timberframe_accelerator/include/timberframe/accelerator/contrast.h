/* AdjustContrastv2 of images [.., pixels, channels]. T: dtype; GROUP: work-items of a group, a power of two. */
#include <timberframe/accelerator/language.h>

/* The mean of each channel of each image: a group for each, whose items add every GROUP-th pixel and then pairwise. */
TF_KERNEL tf_channel_means(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_VALUE(T) *means, tf_index pixels,
                           tf_index channels) {
  TF_SHARED TF_VALUE(T) sums[GROUP];
  const int32_t lane = tf_local_id(0);
  const tf_index row = (tf_index)tf_group_id(0), image = row / channels, c = row - image * channels;
  TF_VALUE(T) sum = 0;
  for (tf_index i = lane; i < pixels; i += GROUP) sum += TF_LOAD(T, in, (image * pixels + i) * channels + c);
  sums[lane] = sum;
  for (int32_t reach = GROUP / 2; reach; reach /= 2) {
    tf_barrier();
    if (lane < reach) sums[lane] += sums[lane + reach];
  }
  if (lane == 0) means[row] = sums[0] / (TF_VALUE(T))pixels;
}

TF_KERNEL tf_adjust_contrast(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const float *factor,
                             TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL const TF_VALUE(T) *means, tf_index count,
                             tf_index pixels, tf_index channels) {
  TF_EACH(i, count) {
    const tf_index pixel = i / channels;
    const TF_VALUE(T) mean = means[pixel / pixels * channels + i - pixel * channels];
    TF_STORE(T, out, i, (TF_LOAD(T, in, i) - mean) * factor[0] + mean);
  }
}
