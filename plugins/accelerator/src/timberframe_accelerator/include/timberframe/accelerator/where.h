/* Coordinates of the elements that are not zero. BITS: unsigned integer as wide as an element. */
#include <timberframe/accelerator/language.h>

static inline void tf_put_coordinates(TF_GLOBAL int64_t *out, tf_index position, TF_GLOBAL const tf_index *sizes,
                                      int32_t rank) {
  for (int32_t d = rank - 1; d > 0; d--) {
    const tf_index rest = position / sizes[d];
    out[d] = position - rest * sizes[d];
    position = rest;
  }
  out[0] = position;
}

/* mask: the bits of which one is set in what is not zero, that is all but the sign of floats. */
#define COMPACT_PARAMETERS \
  TF_GLOBAL const TF_STORAGE(BITS) *x, TF_GLOBAL int64_t *out, TF_GLOBAL const tf_index *sizes, int32_t rank, \
      TF_STORAGE(BITS) mask,
#define COMPACT_KEEPS(i) ((x[i] & mask) != 0)
#define COMPACT_EMIT(at, i) tf_put_coordinates(out + (at) * rank, i, sizes, rank)
#include <timberframe/accelerator/compact.h>
