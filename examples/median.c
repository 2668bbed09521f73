#include "median.h"

#include <string.h>

enum { MOST = 63 };

void median_filter(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  (void)scratch;
  const int64_t* extents = quern_operand_extents(args, 0);
  const int64_t rows = extents[0], n = extents[1], parts = quern_call_parts(args);
  int32_t width;
  memcpy(&width, quern_call_attributes(args), sizeof(width));
  if (width > MOST) width = MOST;
  for (int64_t r = rows * begin / parts; r < rows * end / parts; ++r) {
    const float* x = (const float*)quern_operand(args, 0) + r * n;
    float* y = (float*)quern_result(args, 0) + r * n;
    for (int64_t i = 0; i < n; ++i) {
      float window[MOST];
      int count = 0;
      for (int64_t j = i - width / 2; j <= i + width / 2; ++j) {
        if (j < 0 || j >= n) continue;
        int at = count++;
        for (; at > 0 && window[at - 1] > x[j]; --at) window[at] = window[at - 1];
        window[at] = x[j];
      }
      y[i] = window[count / 2];
    }
  }
}
