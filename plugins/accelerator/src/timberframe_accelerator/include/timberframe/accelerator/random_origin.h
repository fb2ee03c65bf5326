/* Where the random numbers of a launch start.
 *
 * ORIGIN: STREAM where the host tells key and counter; SEEDS for a pair of seeds of dtype TSEED; STATE for a key, a
 * counter and the number of an algorithm in memory. Pointers that an origin has no use for may point anywhere. */
#ifndef TIMBERFRAME_ACCELERATOR_RANDOM_ORIGIN_H
#define TIMBERFRAME_ACCELERATOR_RANDOM_ORIGIN_H

#include <timberframe/accelerator/language.h>
#include <timberframe/random/philox.h>

#define STREAM 0
#define SEEDS 1
#define STATE 2

#define TF_ORIGIN                                                                                                    \
  TF_GLOBAL const TF_STORAGE(TSEED) *seeds, TF_GLOBAL const uint64_t *counter, TF_GLOBAL const int32_t *algorithm,   \
      TF_GLOBAL int64_t *status, int64_t node, uint64_t key, uint64_t low, uint64_t high

/* Declares the generator `g`; ends the kernel where there is none. */
#define TF_OPEN                                                                                                      \
  philox g;                                                                                                          \
  if (!tf_open(seeds, counter, algorithm, status, node, key, low, high, &g)) return;

static inline int tf_open(TF_ORIGIN, philox *g) {
#if ORIGIN == STREAM
  g->key = key, g->low = low, g->high = high;
#elif ORIGIN == SEEDS
  *g = philox_of_seeds((uint64_t)seeds[0], (uint64_t)seeds[1]);
#else
  if (*algorithm != PHILOX_ALGORITHM && *algorithm != PHILOX_AUTOMATIC) {
    tf_report(status, node, 1, *algorithm, 0, 0);
    return 0;
  }
  g->key = (uint64_t)seeds[0], g->low = counter[0], g->high = counter[1];
#endif
  return 1;
}

#endif
