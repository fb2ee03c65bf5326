#include "transpose.h"

#include <string.h>

#include "strided.h"

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));
static inline four load_four(const char *p) {
  four x;
  memcpy(&x, p, sizeof x);
  return x;
}

static inline two load_two(const char *p) {
  two x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* The element-wise way, along the longer side: for what is left over at the edges, and other sizes of elements. */
#define DEFINE_EDGE(bytes)                                                                                      \
  static void edge_##bytes(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along) { \
    if (along < across) {                                                                                       \
      for (int64_t k = 0; k < along; k++) strided_##bytes(to + k * bytes, ts, from + k * ss, bytes, across);    \
    } else {                                                                                                    \
      for (int64_t i = 0; i < across; i++) strided_##bytes(to + i * ts, bytes, from + i * bytes, ss, along);    \
    }                                                                                                           \
  }

DEFINE_EDGE(1)
DEFINE_EDGE(2)
DEFINE_EDGE(4)
DEFINE_EDGE(8)
DEFINE_EDGE(16)

static inline void block_4(char *restrict to, int64_t ts, const char *restrict from, int64_t ss) {
  four a = load_four(from), b = load_four(from + ss), c = load_four(from + 2 * ss), d = load_four(from + 3 * ss);
  four ab_low = SHUFFLE(four, a, b, 0, 4, 1, 5), ab_high = SHUFFLE(four, a, b, 2, 6, 3, 7);
  four cd_low = SHUFFLE(four, c, d, 0, 4, 1, 5), cd_high = SHUFFLE(four, c, d, 2, 6, 3, 7);
  four r0 = SHUFFLE(four, ab_low, cd_low, 0, 1, 4, 5), r1 = SHUFFLE(four, ab_low, cd_low, 2, 3, 6, 7);
  four r2 = SHUFFLE(four, ab_high, cd_high, 0, 1, 4, 5), r3 = SHUFFLE(four, ab_high, cd_high, 2, 3, 6, 7);
  memcpy(to, &r0, 16);
  memcpy(to + ts, &r1, 16);
  memcpy(to + 2 * ts, &r2, 16);
  memcpy(to + 3 * ts, &r3, 16);
}

static inline void block_8(char *restrict to, int64_t ts, const char *restrict from, int64_t ss) {
  two a = load_two(from), b = load_two(from + ss);
  two r0 = SHUFFLE(two, a, b, 0, 2), r1 = SHUFFLE(two, a, b, 1, 3);
  memcpy(to, &r0, 16);
  memcpy(to + ts, &r1, 16);
}

#define NARROW 512 /* rows of the source that are walked at once where a row is too short for a square */

/* Blocks of `lines` rows of the source, which become one cache line of each target row; in them, squares of `side`. */
#define DEFINE_BLOCKED(bytes, side, lines)                                                                      \
  void transpose_##bytes(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along) {   \
    int64_t whole = across / side * side, k = 0;                                                                \
    for (; !whole && k + NARROW <= along; k += NARROW)                                                          \
      edge_##bytes(to + k * bytes, ts, from + k * ss, ss, across, NARROW);                                      \
    for (; k + lines <= along; k += lines) {                                                                    \
      for (int64_t i = 0; i < whole; i += side)                                                                 \
        for (int64_t m = k; m < k + lines; m += side)                                                           \
          block_##bytes(to + i * ts + m * bytes, ts, from + m * ss + i * bytes, ss);                            \
      if (whole < across)                                                                                       \
        edge_##bytes(to + whole * ts + k * bytes, ts, from + k * ss + whole * bytes, ss, across - whole, lines); \
    }                                                                                                           \
    for (; k + side <= along; k += side) {                                                                      \
      for (int64_t i = 0; i < whole; i += side)                                                                 \
        block_##bytes(to + i * ts + k * bytes, ts, from + k * ss + i * bytes, ss);                              \
      if (whole < across)                                                                                       \
        edge_##bytes(to + whole * ts + k * bytes, ts, from + k * ss + whole * bytes, ss, across - whole, side); \
    }                                                                                                           \
    if (k < along) edge_##bytes(to + k * bytes, ts, from + k * ss, ss, across, along - k);                      \
  }

DEFINE_BLOCKED(4, 4, 16)
DEFINE_BLOCKED(8, 2, 8)

/* A few rows of the source at a time, so that they stay in the first-level cache while the target is written. */
#define DEFINE_PLAIN(bytes, lines)                                                                              \
  void transpose_##bytes(char *to, int64_t ts, const char *from, int64_t ss, int64_t across, int64_t along) {   \
    for (int64_t k = 0; k < along; k += lines)                                                                  \
      edge_##bytes(to + k * bytes, ts, from + k * ss, ss, across, along - k < lines ? along - k : lines);       \
  }

DEFINE_PLAIN(1, 64)
DEFINE_PLAIN(2, 32)
DEFINE_PLAIN(16, 4)

void reverse_4(char *to, const char *from, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    four x = load_four(from - 4 * i - 12);
    four y = SHUFFLE(four, x, x, 3, 2, 1, 0);
    memcpy(to + 4 * i, &y, 16);
  }
  for (; i < n; i++) memcpy(to + 4 * i, from - 4 * i, 4);
}

void reverse_8(char *to, const char *from, int64_t n) {
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    two x = load_two(from - 8 * i - 8);
    two y = SHUFFLE(two, x, x, 1, 0);
    memcpy(to + 8 * i, &y, 16);
  }
  for (; i < n; i++) memcpy(to + 8 * i, from - 8 * i, 8);
}
