/* Colours of pixels of three values. T: dtype; REAL, FLOOR: type that is computed in, and its floor. */
#include <timberframe/accelerator/language.h>

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define PIXELS TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index count
#define LOAD_PIXEL(a, b, c) \
  const REAL a = TF_LOAD(T, in, 3 * i), b = TF_LOAD(T, in, 3 * i + 1), c = TF_LOAD(T, in, 3 * i + 2)

/* Hue in [0, 1), saturation and value. A. R. Smith, Color gamut transform pairs, 1978. */
#define FIND_HSV(r, g, b)                                                                          \
  const REAL value = MOST(MOST(r, g), b), span = value - LEAST(LEAST(r, g), b);                    \
  const REAL saturation = value > 0 ? span / value : 0, sixth = 1 / (6 * (span > 0 ? span : 1));   \
  REAL hue = r == value ? sixth * (g - b)                                                          \
             : g == value ? sixth * (b - r) + (REAL)1 / 3 : sixth * (r - g) + (REAL)2 / 3;         \
  if (!(span > 0)) hue = 0;                                                                        \
  if (hue < 0) hue += 1

static inline REAL tf_clipped(REAL x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}

static inline REAL tf_distance(REAL x) {
  return x < 0 ? -x : x;
}

/* The component whose part of the colour wheel is `part`. */
static inline REAL tf_component(REAL part, REAL saturation, REAL value) {
  return ((1 - saturation) + saturation * tf_clipped(part)) * value;
}

#define STORE_RGB(hue, saturation, value)                                                          \
  const REAL turned = (hue) * 6;                                                                   \
  TF_STORE(T, out, 3 * i, tf_component(tf_distance(turned - 3) - 1, saturation, value));           \
  TF_STORE(T, out, 3 * i + 1, tf_component(2 - tf_distance(turned - 2), saturation, value));       \
  TF_STORE(T, out, 3 * i + 2, tf_component(2 - tf_distance(turned - 4), saturation, value))

TF_KERNEL tf_rgb_to_hsv(PIXELS) {
  TF_EACH(i, count) {
    LOAD_PIXEL(r, g, b);
    FIND_HSV(r, g, b);
    TF_STORE(T, out, 3 * i, hue);
    TF_STORE(T, out, 3 * i + 1, saturation);
    TF_STORE(T, out, 3 * i + 2, value);
  }
}

TF_KERNEL tf_hsv_to_rgb(PIXELS) {
  TF_EACH(i, count) {
    LOAD_PIXEL(h, s, v);
    STORE_RGB(h, s, v);
  }
}

TF_KERNEL tf_adjust_saturation(PIXELS, TF_GLOBAL const float *scale) {
  TF_EACH(i, count) {
    LOAD_PIXEL(r, g, b);
    FIND_HSV(r, g, b);
    const REAL scaled = tf_clipped(saturation * scale[0]);
    STORE_RGB(hue, scaled, value);
  }
}

/* The largest and the smallest component stay, the middle one moves between them, and their channels change. */
TF_KERNEL tf_adjust_hue(PIXELS, TF_GLOBAL const float *delta) {
  TF_EACH(i, count) {
    LOAD_PIXEL(r, g, b);
    const REAL least = LEAST(LEAST(r, g), b), most = MOST(MOST(r, g), b), span = most - least;
    const REAL middle = MOST(LEAST(r, g), LEAST(MOST(r, g), b)); /* of three: no rounding */
    const int32_t sixth = r < g ? (b < r ? 1 : b > g ? 3 : 2) : (b < g ? 0 : b > r ? 4 : 5);
    const REAL ratio = span > 0 ? (middle - least) / span : 0;
    REAL hue = span > 0 ? sixth + (sixth % 2 ? 1 - ratio : ratio) : 0;
    hue += delta[0] * 6;
    hue -= 6 * FLOOR(hue / 6);
    if (hue < 0) hue += 6;
    if (hue >= 6) hue -= 6;
    const int32_t now = LEAST((int32_t)hue, 5);
    const REAL part = hue - now, between = least + (now % 2 ? 1 - part : part) * span;
    const int32_t high = (now + 1) / 2 % 3, low = (now + 4) / 2 % 3; /* channels of the largest and the smallest */
    for (int32_t k = 0; k < 3; k++) TF_STORE(T, out, 3 * i + k, k == high ? most : k == low ? least : between);
  }
}
