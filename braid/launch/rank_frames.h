// Messages between a rank's process and its supervisor over a stream, each in a frame (control/frame.h).
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "braid/control/frame.h"
#include "braid/control/key_value_store.h"

namespace braid::launch {

using Texts = std::vector<std::string>;

// Sent by a rank: sets a value for all ranks of the job.
struct SetRequest {
  std::string key, value;
};
// Sent by a rank: asks for a value. The answer repeats the number `question`.
struct GetRequest {
  int64_t question = 0;
  std::string key;
};
// Sent by a rank as its last frame: its outcome (rank_outcome.h).
struct EndReport {
  std::string outcome;
};
// Sent by the supervisor: the answer to a GetRequest.
struct GetAnswer {
  int64_t question = 0;
  std::optional<std::string> value;  // nullopt: not set yet; a second answer follows once it is
};
using RankFrame = std::variant<SetRequest, GetRequest, EndReport, GetAnswer>;

std::string frame_of(RankFrame frame);
// Returns the oldest complete frame; nothing if there is none. Throws CommError if the frame is malformed.
std::optional<RankFrame> next_frame(control::FrameReader& reader);

// A rank's access to the values that all ranks of the job share. Thread-safe.
class StoreOverStream final : public control::KeyValueStore {
 public:
  // REQUIRES: the descriptor `line` stays open as long as this exists, and no other code reads from it.
  explicit StoreOverStream(int line) : line_(line) {}

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;
  // Sends the outcome of the rank and ends the process (rank_life.h). Other threads can send nothing after this call.
  [[noreturn]] void leave(const std::string& outcome) noexcept;

 private:
  std::optional<GetAnswer> next_about(int64_t question, double until);

  const int line_;
  std::mutex lock_;
  control::FrameReader reader_;
  int64_t questions_ = 0;
};

}  // namespace braid::launch
