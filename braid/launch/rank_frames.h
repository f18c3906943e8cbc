// Messages between a rank's process and its supervisor over a stream: lists of texts, each in a frame.
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

// A rank sets a value for all ranks of the job.
struct SetRequest {
  std::string key, value;
};
// A rank asks for a value.
struct GetRequest {
  int64_t question = 0;
  std::string key;
};
// The rank's last frame: how it ended (rank_outcome.h).
struct EndReport {
  std::string outcome;
};
// The supervisor's answer.
struct GetAnswer {
  int64_t question = 0;
  std::optional<std::string> value;  // none: the answer comes when there is one
};
using RankFrame = std::variant<SetRequest, GetRequest, EndReport, GetAnswer>;

std::string frame_of(RankFrame frame);
// The oldest frame that has come whole; nothing where none has. Throws CommError for bytes that are no frame.
std::optional<RankFrame> next_frame(control::FrameReader& reader);

// The rank's side: values that all ranks of a job see. Thread-safe.
class StoreOverStream final : public control::KeyValueStore {
 public:
  // `line` outlives this; nobody else reads it.
  explicit StoreOverStream(int line) : line_(line) {}

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;
  // The rank's last word: how it ended. Ends the process (rank_life.h); other threads say nothing any more.
  [[noreturn]] void leave(const std::string& outcome) noexcept;

 private:
  std::optional<GetAnswer> next_about(int64_t question, double until);

  const int line_;
  std::mutex lock_;
  control::FrameReader heard_;
  int64_t questions_ = 0;
};

}  // namespace braid::launch
