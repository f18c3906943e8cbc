// The workspaces of a tokenizer's threads. A workspace has what one thread needs while it encodes, such as a cursor and
// a cache.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace braid::tokenize {

// A pool of workspaces. Several threads may use it at once.
template <class Workspace>
class WorkspacePool {
 public:
  using Make = std::function<std::unique_ptr<Workspace>()>;

  // Makes the first workspace, so that an exception of `make` comes from here.
  explicit WorkspacePool(Make make) : make_(std::move(make)) { give_back(make_()); }

  std::unique_ptr<Workspace> borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
      }
    }
    return make_();
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  Make make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace braid::tokenize
