/* Rows of logits: their largest element, and the sum of the exponentials of all relative to it.
 *
 * TF_SUM_ROW(x, begin, step, classes), within TF_EACH_LINE, declares `top` and `sum`, for a row whose elements lie `step`
 * apart from x[begin] on. After it TF_EACH_LOGIT(c, classes) goes over the row again, where TF_LOGIT(x, begin, c, step) is
 * element c, and TF_EXPONENTIAL of the same its exponential relative to `top`.
 *
 * HELD: elements of a row that each work-item keeps in registers, of all of it, which is so read once; with EXPONENTIALS
 * their exponentials take their place. ONLINE: `top` and `sum` are found in one pass; else in two. T, PRECISION, EACH:
 * see rows.h. */
#include <timberframe/accelerator/rows.h>

#if defined(HELD)

/* Elements that the row does not have are -infinity, whose exponential is 0. */
#define TF_SUM_ROW(x, begin, step, classes)                                                       \
  value held[HELD], top = -TF_INFINITY32, sum = 0;                                                \
  TF_UNROLL for (int32_t k = 0; k < HELD; k++) {                                                  \
    const tf_index c = lane + k * lanes;                                                          \
    held[k] = c < (classes) ? (value)TF_LOAD(T, x, (begin) + c * (step)) : (value)-TF_INFINITY32; \
    top = held[k] > top ? held[k] : top;                                                          \
  }                                                                                               \
  top = tf_row_maximum(top);                                                                      \
  TF_UNROLL for (int32_t k = 0; k < HELD; k++) {                                                  \
    const value exponential = TF_FUNCTION(exp)(held[k] - top);                                    \
    sum += exponential;                                                                           \
    TF_KEEP_EXPONENTIAL                                                                           \
  }                                                                                               \
  sum = tf_row_sum(sum);
#define TF_EACH_LOGIT(c, classes)                \
  TF_UNROLL for (int32_t k = 0; k < HELD; k++) \
    for (tf_index c = lane + k * lanes; c < (classes); c = (classes))
#define TF_LOGIT(x, begin, c, step) held[k]
#if defined(EXPONENTIALS)
#define TF_KEEP_EXPONENTIAL held[k] = exponential;
#define TF_EXPONENTIAL(x, begin, c, step) held[k]
#else
#define TF_KEEP_EXPONENTIAL
#endif

#else

#define TF_EACH_LOGIT(c, classes) TF_EACH_CLASS(c, classes)
#define TF_LOGIT(x, begin, c, step) (value) TF_LOAD(T, x, (begin) + (c) * (step))
#define TF_EXPONENTIAL(x, begin, c, step) TF_FUNCTION(exp)(TF_LOGIT(x, begin, c, step) - top)

#if defined(ONLINE)

/* Each work-item's sum is relative to the largest element that it has met (M. Milakov, N. Gimelshein: Online normalizer
 * calculation for softmax, 2018). An infinite largest element makes the sum NaN, as it does in two passes. */
#define TF_SUM_ROW(x, begin, step, classes)                          \
  value top = -TF_INFINITY32, sum = 0;                               \
  TF_EACH_CLASS(c, classes) {                                        \
    const value v = TF_LOGIT(x, begin, c, step);                     \
    if (v > top) {                                                   \
      sum = sum * TF_FUNCTION(exp)(top - v) + 1;                     \
      top = v;                                                       \
    } else {                                                         \
      sum += v == top ? 1 : TF_FUNCTION(exp)(v - top);               \
    }                                                                \
  }                                                                  \
  const value own = top;                                             \
  top = tf_row_maximum(own);                                         \
  sum *= own == top ? 1 : TF_FUNCTION(exp)(own - top);               \
  sum = tf_row_sum(sum) + (top - top);

#else

#define TF_SUM_ROW(x, begin, step, classes)                                               \
  value top = -TF_INFINITY32, sum = 0;                                                    \
  TF_EACH_CLASS(c, classes) {                                                             \
    const value v = TF_LOGIT(x, begin, c, step);                                          \
    top = v > top ? v : top;                                                              \
  }                                                                                       \
  top = tf_row_maximum(top);                                                              \
  TF_EACH_CLASS(c, classes) sum += TF_EXPONENTIAL(x, begin, c, step);                     \
  sum = tf_row_sum(sum);

#endif
#endif
