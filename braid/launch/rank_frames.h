// What a rank's process and its supervisor say to each other over a stream: lists of texts, each in a frame. It does
// not know what they say.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/control/frame.h"
#include "braid/control/key_value_store.h"

namespace braid {

using Texts = std::vector<std::string>;

std::string frame_of(const Texts& texts);
// The oldest that has come whole; nothing where none has.
std::optional<Texts> next_frame(FrameReader& reader);

// Words of frames.
inline constexpr const char* kSet = "set";         // key, value
inline constexpr const char* kGet = "get";         // number of the question, key
inline constexpr const char* kValue = "value";     // number of the question, value: the supervisor's answer, or
inline constexpr const char* kNotYet = "not yet";  // number of the question: its answer comes when there is one
inline constexpr const char* kEnd = "end";         // outcome (rank_outcome.h)

// The rank's side: values that all ranks of a job see. Thread-safe.
class StoreOverLine final : public KeyValueStore {
 public:
  // `line` outlives this; nobody else reads it.
  explicit StoreOverLine(int line) : line_(line) {}

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;
  // The rank's last word: how it ended. Ends the process (rank_life.h); other threads say nothing any more.
  [[noreturn]] void leave(const std::string& outcome) noexcept;

 private:
  std::optional<Texts> next_about(const std::string& number, double until);

  const int line_;
  std::mutex lock_;
  FrameReader heard_;
  int64_t questions_ = 0;
};

}  // namespace braid
