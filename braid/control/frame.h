// Messages in a stream of bytes: each behind its length.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace braid::control {

constexpr size_t kMostFrameBytes = size_t{64} << 20;

constexpr size_t kFrameHeadBytes = 4;  // the length of the message

// A frame on its way, shared by all that it goes to.
using Frame = std::shared_ptr<const std::string>;

// kFrameHeadBytes of length, little-endian, and the message, of at most kMostFrameBytes.
Frame framed(std::string_view message);

// Puts messages together as their bytes come.
class FrameReader {
 public:
  // Messages of more than `bytes` are refused from the next on; kMostFrameBytes until this is called.
  void limit(size_t bytes) { most_ = bytes; }
  // False, now and ever after, where a length is claimed that no frame has: no memory is taken for it.
  bool add(std::string_view bytes);
  // The whole messages, oldest first. Whoever takes them removes them.
  std::deque<std::string>& messages() { return messages_; }

 private:
  std::string header_, message_;
  size_t most_ = kMostFrameBytes;
  size_t missing_ = 0;  // of message_
  bool broken_ = false;
  std::deque<std::string> messages_;
};

}  // namespace braid::control
