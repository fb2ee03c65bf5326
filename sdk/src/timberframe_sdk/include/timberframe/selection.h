/* What one entry of begin and end selects of a dimension in StridedSlice: C, OpenCL C and CUDA C++. */
#ifndef TIMBERFRAME_SELECTION_H
#define TIMBERFRAME_SELECTION_H

static inline int64_t tf_selection_clamp(int64_t index, int64_t size, int64_t low, int64_t high) {
  if (index < 0) index += size;
  return index < low ? low : index > high ? high : index;
}

/* The first index; step is not zero. */
static inline int64_t tf_selection_first(int64_t begin, int64_t size, int64_t step, int64_t masked) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  return masked ? (step > 0 ? low : high) : tf_selection_clamp(begin, size, low, high);
}

/* How many indices there are from `first` on. */
static inline int64_t tf_selection_count(int64_t first, int64_t end, int64_t size, int64_t step, int64_t masked) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const int64_t last = masked ? (step > 0 ? high : low) : tf_selection_clamp(end, size, low, high);
  const int64_t span = step > 0 ? last - first : first - last, by = step > 0 ? step : -step;
  return span > 0 ? (span + by - 1) / by : 0;
}

#endif
