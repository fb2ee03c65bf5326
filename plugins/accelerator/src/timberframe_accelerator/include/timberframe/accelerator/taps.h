/* Windows over images with channels last, for kernels whose work-items each take a pixel and a channel.
 *
 * sizes: the words below. Launches are LANES work-items wide along channels; lines are pixels or taps, which all lanes
 * have in common. */
#include <timberframe/accelerator/language.h>

enum {
  HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH, KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X, TOP,
  LEFT, CHANNELS, MULTIPLIER
};

#define EACH_LINE(i, count) \
  for (int32_t i = (int32_t)tf_global_id(1); i < (count); i += (int32_t)tf_global_size(1))
/* Every work-item takes the channel `first` + tf_lane(), where it is below `count`. */
#define EACH_CHANNEL(first, count)                                                                           \
  for (int32_t first = (int32_t)tf_group_id(0) * LANES; first < (count); first += (int32_t)tf_group_count(0) * LANES) \
    if (first + tf_local_id(0) < (count))

typedef struct tf_pixel {
  int32_t image, y, x;
} tf_pixel;

static inline tf_pixel tf_pixel_of(int32_t number, int32_t height, int32_t width) {
  tf_pixel found;
  found.x = number % width;
  found.y = number / width % height;
  found.image = number / width / height;
  return found;
}

/* The number of the input's pixel that an output's pixel has under tap (i, j), -1 if it lies outside. */
static inline int32_t tf_input_pixel(TF_GLOBAL const int32_t *s, tf_pixel out, int32_t i, int32_t j) {
  const int32_t y = out.y * s[STRIDE_Y] - s[TOP] + i * s[DILATION_Y];
  const int32_t x = out.x * s[STRIDE_X] - s[LEFT] + j * s[DILATION_X];
  if (y < 0 || y >= s[HEIGHT] || x < 0 || x >= s[WIDTH]) return -1;
  return (out.image * s[HEIGHT] + y) * s[WIDTH] + x;
}

/* The number of the output's pixel that has an input's pixel under tap (i, j), -1 if there is none. */
static inline int32_t tf_output_pixel(TF_GLOBAL const int32_t *s, tf_pixel in, int32_t i, int32_t j) {
  const int32_t y = in.y + s[TOP] - i * s[DILATION_Y], x = in.x + s[LEFT] - j * s[DILATION_X];
  if (y < 0 || x < 0 || y % s[STRIDE_Y] || x % s[STRIDE_X]) return -1;
  if (y / s[STRIDE_Y] >= s[OUT_HEIGHT] || x / s[STRIDE_X] >= s[OUT_WIDTH]) return -1;
  return (in.image * s[OUT_HEIGHT] + y / s[STRIDE_Y]) * s[OUT_WIDTH] + x / s[STRIDE_X];
}
