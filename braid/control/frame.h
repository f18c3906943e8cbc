// Frames: messages in a stream of bytes, each preceded by its length.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace braid::control {

constexpr size_t kMostFrameBytes = size_t{64} << 20;

constexpr size_t kFrameHeadBytes = 4;  // header: the length of the message

// An encoded frame, shared by all connections that send it.
using Frame = std::shared_ptr<const std::string>;

// Returns the frame of `message`: its length in kFrameHeadBytes, little-endian, and the message.
// REQUIRES: `message` has at most kMostFrameBytes.
Frame framed(std::string_view message);

// A reader that assembles messages from a stream of bytes.
class FrameReader {
 public:
  // Sets the largest message that is accepted, from the next message on. The default is kMostFrameBytes.
  void limit(size_t bytes) { most_ = bytes; }
  // Adds bytes of the stream. Returns false, now and in all later calls, if a header claims a longer message than is
  // accepted; no memory is allocated for that message.
  bool add(std::string_view bytes);
  // Returns the complete messages, oldest first. The caller removes the messages that it takes.
  std::deque<std::string>& messages() { return messages_; }

 private:
  std::string header_, message_;
  size_t most_ = kMostFrameBytes;
  size_t missing_ = 0;  // bytes of message_ that have not arrived
  bool broken_ = false;
  std::deque<std::string> messages_;
};

}  // namespace braid::control
