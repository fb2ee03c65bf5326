/* Blocks of Philox made several at a time in 64-bit lanes, of which a multiplication takes the lower half: what the
 * upper half holds between rounds does not matter; and where a kernel's stream starts. */
#ifndef TIMBERFRAME_CPU_PHILOX_H
#define TIMBERFRAME_CPU_PHILOX_H

#include <timberframe/random/philox.h>

#include "common/lanes.h"
#include "common/table.h"

#if defined(__AVX512F__)

enum { PHILOX_LANES = 16 };
typedef __m512i philox_lanes;
#define PHILOX_MULTIPLY _mm512_mul_epu32
#define PHILOX_XOR _mm512_xor_si512
#define PHILOX_HIGH(x) _mm512_srli_epi64(x, 32)
#define PHILOX_ALL(x) _mm512_set1_epi64((long long)(uint64_t)(x))
#define PHILOX_WIDTH 8

/* Numbers of lanes as blocks: first and second halves of each block lie in the lanes of `ab` and `cd`. */
static inline void philox_store(uint32_t *out, philox_lanes ab, philox_lanes cd) {
  const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(ab, first, cd));
  _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(ab, second, cd));
}

static inline philox_lanes philox_pair(philox_lanes low, philox_lanes high) {
  return _mm512_mask_shuffle_epi32(low, 0xaaaa, high, _MM_PERM_CCAA);
}

#define PHILOX_VECTORS
#elif defined(__AVX2__)

enum { PHILOX_LANES = 8 };
typedef __m256i philox_lanes;
#define PHILOX_MULTIPLY _mm256_mul_epu32
#define PHILOX_XOR _mm256_xor_si256
#define PHILOX_HIGH(x) _mm256_srli_epi64(x, 32)
#define PHILOX_ALL(x) _mm256_set1_epi64x((long long)(uint64_t)(x))
#define PHILOX_WIDTH 4

static inline void philox_store(uint32_t *out, philox_lanes ab, philox_lanes cd) {
  const __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
  _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256((__m256i *)(void *)(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

static inline philox_lanes philox_pair(philox_lanes low, philox_lanes high) {
  return _mm256_blend_epi32(low, _mm256_shuffle_epi32(high, _MM_SHUFFLE(2, 2, 0, 0)), 0xaa);
}

#define PHILOX_VECTORS
#endif

/* The blocks at PHILOX_LANES offsets. */
#ifdef PHILOX_VECTORS

typedef struct philox_state {
  philox_lanes a, b, c, d;
} philox_state;

static inline philox_state philox_start(const philox *g, const uint64_t *offsets) {
  uint64_t a[PHILOX_WIDTH], b[PHILOX_WIDTH], c[PHILOX_WIDTH], d[PHILOX_WIDTH];
  for (int i = 0; i < PHILOX_WIDTH; i++) {
    const uint64_t low = g->low + offsets[i], high = g->high + (low < offsets[i]);
    a[i] = low, b[i] = low >> 32, c[i] = high, d[i] = high >> 32;
  }
  philox_state s;
  memcpy(&s.a, a, sizeof s.a);
  memcpy(&s.b, b, sizeof s.b);
  memcpy(&s.c, c, sizeof s.c);
  memcpy(&s.d, d, sizeof s.d);
  return s;
}

static inline void philox_round(philox_state *s, philox_lanes k0, philox_lanes k1) {
  const philox_lanes p = PHILOX_MULTIPLY(s->a, PHILOX_ALL(PHILOX_M0)), q = PHILOX_MULTIPLY(s->c, PHILOX_ALL(PHILOX_M1));
  s->a = PHILOX_XOR(PHILOX_XOR(PHILOX_HIGH(q), s->b), k0);
  s->b = q;
  s->c = PHILOX_XOR(PHILOX_XOR(PHILOX_HIGH(p), s->d), k1);
  s->d = p;
}

static inline void philox_lane_blocks(const philox *g, const uint64_t *offsets, uint32_t *out) {
  /* Two states at a time hide the latency of the multiplications. */
  philox_state s = philox_start(g, offsets), t = philox_start(g, offsets + PHILOX_WIDTH);
  uint32_t k0 = (uint32_t)g->key, k1 = (uint32_t)(g->key >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    philox_round(&s, PHILOX_ALL(k0), PHILOX_ALL(k1));
    philox_round(&t, PHILOX_ALL(k0), PHILOX_ALL(k1));
    k0 += PHILOX_W0;
    k1 += PHILOX_W1;
  }
  philox_store(out, philox_pair(s.a, s.b), philox_pair(s.c, s.d));
  philox_store(out + 4 * PHILOX_WIDTH, philox_pair(t.a, t.b), philox_pair(t.c, t.d));
}

#else

enum { PHILOX_LANES = 1 };

static inline void philox_lane_blocks(const philox *g, const uint64_t *offsets, uint32_t *out) {
  philox_block(g, *offsets, out);
}

#endif

/* `count` blocks, from `first` on and `stride` apart, one after the other. */
static inline void philox_blocks(const philox *g, uint64_t first, uint64_t stride, int64_t count, uint32_t *out) {
  int64_t i = 0;
  for (; i + PHILOX_LANES <= count; i += PHILOX_LANES) {
    uint64_t offsets[PHILOX_LANES];
    for (uint64_t j = 0; j < PHILOX_LANES; j++) offsets[j] = first + ((uint64_t)i + j) * stride;
    philox_lane_blocks(g, offsets, out + 4 * i);
  }
  for (; i < count; i++) philox_block(g, first + (uint64_t)i * stride, out + 4 * i);
}

/* The blocks at `count` offsets; there is room for a multiple of PHILOX_LANES of offsets and of blocks. */
static inline void philox_scattered(const philox *g, uint64_t *offsets, int64_t count, uint32_t *out) {
  for (int64_t i = count; i % PHILOX_LANES; i++) offsets[i] = offsets[count - 1];
  for (int64_t i = 0; i < count; i += PHILOX_LANES) philox_lane_blocks(g, offsets + i, out + 4 * i);
}

/* The first five parameters of each kernel say where its stream starts. */
enum philox_origin {
  PHILOX_STREAM,    /* address of the counter, key, upper half of the counter, blocks to reserve */
  PHILOX_SEEDS,     /* number of the input that holds two seeds, bytes of each, whether they are signed */
  PHILOX_STATE,     /* number of the first of the inputs key, counter, alg */
  PHILOX_ORIGINS
};
enum { PHILOX_PARAMETERS = 5, PHILOX_BAD_ALGORITHM = 1 };

static inline uint64_t philox_seed(const void *seeds, int64_t i, int64_t bytes, int64_t is_signed) {
  if (bytes == 8) return ((const uint64_t *)seeds)[i];
  return is_signed ? (uint64_t)(int64_t)((const int32_t *)seeds)[i] : ((const uint32_t *)seeds)[i];
}

/* Where the stream of this launch starts; a stateful one moves on for the next launch. */
static inline int32_t philox_open(tf_context *context, const tf_tensor *const *inputs, const int64_t *parameters,
                                  philox *g) {
  if (parameters[0] == PHILOX_STREAM) {
    uint64_t *counter = (uint64_t *)(uintptr_t)parameters[1];
    const uint64_t first = __atomic_fetch_add(counter, (uint64_t)parameters[4], __ATOMIC_RELAXED);
    *g = (philox){(uint64_t)parameters[2], first, (uint64_t)parameters[3]};
  } else if (parameters[0] == PHILOX_SEEDS) {
    const void *seeds = inputs[parameters[1]]->data;
    *g = philox_of_seeds(philox_seed(seeds, 0, parameters[2], parameters[3]),
                         philox_seed(seeds, 1, parameters[2], parameters[3]));
  } else {
    const uint64_t *key = inputs[parameters[1]]->data, *counter = inputs[parameters[1] + 1]->data;
    const int32_t algorithm = *(const int32_t *)inputs[parameters[1] + 2]->data;
    if (algorithm != PHILOX_ALGORITHM && algorithm != PHILOX_AUTOMATIC) {
      return tf_fail(context, TF_INVALID_ARGUMENT, PHILOX_BAD_ALGORITHM, algorithm, 0, 0, 0);
    }
    *g = (philox){key[0], counter[0], counter[1]};
  }
  return TF_OK;
}

#endif
