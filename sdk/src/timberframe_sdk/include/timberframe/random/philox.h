/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw; SC 2011): blocks of four 32-bit numbers of a key and a counter. */
#ifndef TIMBERFRAME_RANDOM_PHILOX_H
#define TIMBERFRAME_RANDOM_PHILOX_H

#include <timberframe/math/language.h>

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u
#define PHILOX_ROUNDS 10

/* The numbers of TensorFlow's algorithms that this one answers to. */
#define PHILOX_ALGORITHM 1
#define PHILOX_AUTOMATIC 3

typedef struct philox {
  uint64_t key, low, high; /* the counter's lower and upper halves */
} philox;

static inline void philox_block(const philox *g, uint64_t offset, uint32_t *x) {
  const uint64_t low = g->low + offset, high = g->high + (low < offset);
  uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32), c = (uint32_t)high, d = (uint32_t)(high >> 32);
  uint32_t k0 = (uint32_t)g->key, k1 = (uint32_t)(g->key >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    const uint64_t p = (uint64_t)PHILOX_M0 * a, q = (uint64_t)PHILOX_M1 * c;
    a = (uint32_t)(q >> 32) ^ b ^ k0;
    b = (uint32_t)q;
    c = (uint32_t)(p >> 32) ^ d ^ k1;
    d = (uint32_t)p;
    k0 += PHILOX_W0;
    k1 += PHILOX_W1;
  }
  x[0] = a, x[1] = b, x[2] = c, x[3] = d;
}

/* The generator of a pair of seeds: they are mixed by one block of a fixed key. */
static inline philox philox_of_seeds(uint64_t first, uint64_t second) {
  const philox scramble = {0x02461E293EC8F720u, first, second};
  uint32_t x[4];
  philox_block(&scramble, 0, x);
  const philox mixed = {x[0] | (uint64_t)x[1] << 32, 0, x[2] | (uint64_t)x[3] << 32};
  return mixed;
}

#endif
