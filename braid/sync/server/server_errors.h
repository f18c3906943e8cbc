// The exceptions of servers, rethrown by workers that find a server closed. Thread-safe.
#pragma once

#include <exception>
#include <map>
#include <mutex>

namespace braid::sync::server {

class ServerErrors {
 public:
  void add(int server, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    errors_.emplace(server, std::move(error));
  }
  // Throws the exception of `server`, if there is one.
  void rethrow(int server) const {
    std::exception_ptr error;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = errors_.find(server); found != errors_.end()) error = found->second;
    }
    if (error) std::rethrow_exception(error);
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, std::exception_ptr> errors_;  // by server
};

}  // namespace braid::sync::server
