/* strided_<bytes>: to[i * ts] = from[i * ss] for n elements of that many bytes; ts and ss are in bytes. Elements may be
 * aligned to less than their size, hence memcpy. Four at a time: the compiler cannot know that they do not overlap. */
#ifndef TIMBERFRAME_CPU_STRIDED_H
#define TIMBERFRAME_CPU_STRIDED_H

#include <stdint.h>
#include <string.h>

typedef struct unit16 {
  uint64_t low, high;
} unit16;

#define DEFINE_STRIDED(bytes, type)                                                                             \
  static inline void strided_##bytes(char *to, int64_t ts, const char *from, int64_t ss, int64_t n) {           \
    int64_t i = 0;                                                                                              \
    for (; i + 4 <= n; i += 4, to += 4 * ts, from += 4 * ss) {                                                  \
      type a, b, c, d;                                                                                          \
      memcpy(&a, from, bytes), memcpy(&b, from + ss, bytes);                                                    \
      memcpy(&c, from + 2 * ss, bytes), memcpy(&d, from + 3 * ss, bytes);                                       \
      memcpy(to, &a, bytes), memcpy(to + ts, &b, bytes);                                                        \
      memcpy(to + 2 * ts, &c, bytes), memcpy(to + 3 * ts, &d, bytes);                                           \
    }                                                                                                           \
    for (; i < n; i++, to += ts, from += ss) memcpy(to, from, bytes);                                           \
  }

DEFINE_STRIDED(1, uint8_t)
DEFINE_STRIDED(2, uint16_t)
DEFINE_STRIDED(4, uint32_t)
DEFINE_STRIDED(8, uint64_t)
DEFINE_STRIDED(16, unit16)

#endif
