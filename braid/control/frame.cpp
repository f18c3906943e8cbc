// Memory grows with the bytes received, not with the length that a header claims.
#include "braid/control/frame.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"

namespace braid::control {

Frame framed(std::string_view message) {
  check(message.size() <= kMostFrameBytes, "a message to the nodes of a job has at most 64 MiB");
  std::string bytes;
  bytes.reserve(kFrameHeadBytes + message.size());
  for (size_t i = 0; i < kFrameHeadBytes; ++i) bytes += static_cast<char>(message.size() >> (8 * i));
  bytes += message;
  return std::make_shared<const std::string>(std::move(bytes));
}

bool FrameReader::add(std::string_view bytes) {
  while (!broken_ && !bytes.empty()) {
    const bool in_header = header_.size() < kFrameHeadBytes;
    const size_t count = std::min(bytes.size(), in_header ? kFrameHeadBytes - header_.size() : missing_);
    (in_header ? header_ : message_).append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (!in_header) {
      missing_ -= count;
    } else if (header_.size() == kFrameHeadBytes) {
      missing_ = 0;
      for (size_t i = 0; i < kFrameHeadBytes; ++i)
        missing_ |= size_t{static_cast<unsigned char>(header_[i])} << (8 * i);
      broken_ = missing_ > most_;
    }
    if (header_.size() == kFrameHeadBytes && missing_ == 0) {
      messages_.push_back(std::exchange(message_, {}));
      header_.clear();
    }
  }
  return !broken_;
}

}  // namespace braid::control
