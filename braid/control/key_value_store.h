// A key-value store that all ranks of a job share. Communication engines use it to find each other.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace braid::control {

// Thread-safe.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // Sets `key` for all ranks. REQUIRES: no rank has set `key` before.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Blocks until a rank has set `key`, and returns its value. Returns nothing if `seconds` pass before. Throws
  // CommError if the job has failed.
  virtual std::optional<std::string> get(const std::string& key, double seconds) = 0;
};

// The store of the threads of one process.
class LocalStore final : public KeyValueStore {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace braid::control
