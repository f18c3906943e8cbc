// Window after window until the last token is predicted.
#include "braid/train/text_windows.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::train {

std::vector<TextWindow> text_windows(int64_t num_tokens, int64_t context, int64_t stride) {
  check(0 < stride && stride <= context, "windows reach the next");
  std::vector<TextWindow> windows;
  int64_t predicted = 0;  // the last token that is
  for (int64_t begin = 0; predicted + 1 < num_tokens; begin += stride) {
    const int64_t end = std::min(begin + context, num_tokens - 1);
    windows.push_back({begin, end - begin, end - predicted});
    predicted = end;
  }
  return windows;
}

}  // namespace braid::train
