// Values by name that all ranks of a job see: what engines exchange to find each other.
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

  // A name is set once.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Blocks until somebody has set it, or `seconds` have passed: then nothing. Throws CommError when the job has failed.
  virtual std::optional<std::string> get(const std::string& key, double seconds) = 0;
};

// The store of one process.
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
