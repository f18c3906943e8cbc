// A map that threads share under a lock.
#include "braid/control/key_value_store.h"

#include <chrono>

namespace braid::control {

void LocalStore::set(const std::string& key, const std::string& value) {
  const std::scoped_lock hold(lock_);
  values_.emplace(key, value);
  changed_.notify_all();
}

std::optional<std::string> LocalStore::get(const std::string& key, double seconds) {
  std::unique_lock hold(lock_);
  const bool there =
      changed_.wait_for(hold, std::chrono::duration<double>(seconds), [&] { return values_.contains(key); });
  if (!there) return std::nullopt;
  return values_.at(key);
}

}  // namespace braid::control
