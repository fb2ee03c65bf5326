/* Gamma, Poisson and binomial numbers, one for each work-item. T: dtype of the parameters, TOUT: of the numbers.
 * NUMBER: gamma_number, poisson_number or binomial_number. */
#include <timberframe/accelerator/random_origin.h>
#include <timberframe/random/rejection.h>

#define TF_ROUND_float64(x) (x)
#define TF_ROUND_float32(x) ((double)(float)(x))
#define TF_ROUND_float16(x) ((double)tf_float32_from_float16(tf_float16_from_float32((float)(x))))
#define TF_ROUND_bfloat16(x) ((double)tf_float32_from_bfloat16(tf_bfloat16_from_float32((float)(x))))
#define TF_ROUND_int32(x) ((double)(int32_t)(x))
#define TF_ROUND_int64(x) ((double)(int64_t)(x))
#define TF_ROUND(dtype, x) TF_ROUND_(dtype, x)
#define TF_ROUND_(dtype, x) TF_ROUND_##dtype(x)

#define TF_IS_INTEGER_int32 1
#define TF_IS_INTEGER_int64 1
#define TF_IS_INTEGER(dtype) TF_IS_INTEGER_(dtype)
#define TF_IS_INTEGER_(dtype) TF_IS_INTEGER_##dtype

/* NaN is 0 among integers. */
static inline void tf_store_number(TF_GLOBAL TF_STORAGE(TOUT) *out, tf_index i, double number) {
#if TF_IS_INTEGER(TOUT)
  number = number != number ? 0 : number;
#endif
  TF_STORE(TOUT, out, i, (TF_VALUE(TOUT))number);
}

/* Output [sample, parameter] is number parameter * samples + sample of the stream. */
TF_KERNEL tf_reject(TF_ORIGIN, TF_GLOBAL const TF_STORAGE(T) *given, TF_GLOBAL TF_STORAGE(TOUT) *out, tf_index count,
                    tf_index parameters, tf_index samples) {
  TF_OPEN
  TF_EACH(i, count) {
    const tf_index k = i / samples;
    const double parameter = (double)TF_LOAD(T, given, k);
    tf_store_number(out, (i - k * samples) * parameters + k, NUMBER(&g, i, &parameter));
  }
}

/* positions: of the count and of the probability of each pair. The mean that chooses the method is computed in T. */
TF_KERNEL tf_reject_pairs(TF_ORIGIN, TF_GLOBAL const TF_STORAGE(T) *counts, TF_GLOBAL const TF_STORAGE(T) *probs,
                          TF_GLOBAL const int64_t *positions, TF_GLOBAL TF_STORAGE(TOUT) *out, tf_index count,
                          tf_index pairs, tf_index samples) {
  TF_OPEN
  TF_EACH(i, count) {
    const tf_index k = i / samples;
    const double n = (double)TF_LOAD(T, counts, positions[2 * k]), p = (double)TF_LOAD(T, probs, positions[2 * k + 1]);
    const double rarer = p > 0.5 ? TF_ROUND(T, 1 - p) : p;
    const double parameters[4] = {n, p, rarer, TF_ROUND(T, n * rarer) >= 10 ? 1.0 : 0.0};
    tf_store_number(out, (i - k * samples) * pairs + k, NUMBER(&g, i, parameters));
  }
}
