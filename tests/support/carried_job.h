// A node of a job whose messages the test carries, as raw bytes: they pass the reader that the lines of a job have.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "braid/control/frame.h"
#include "braid/control/job_reader.h"

namespace braid {

// The message in a frame.
inline std::string unframed(const control::Frame& frame) { return frame->substr(control::kFrameHeadBytes); }

// Thread-safe, because a HeartbeatThread may listen.
class CarriedJob final : public control::JobControl {
 public:
  CarriedJob(int node, std::vector<control::JobNode> nodes)
      : node_(node), nodes_(std::move(nodes)), reader_(static_cast<int>(nodes_.size())) {}

  // A message from node `from`, which is node 0 for all others.
  void receive(int from, std::string bytes) {
    const std::scoped_lock hold(lock_);
    coming_.emplace_back(from, std::move(bytes));
  }
  bool all_read() const {
    const std::scoped_lock hold(lock_);
    return coming_.empty();
  }
  // The nodes that failed, and why.
  std::map<int, std::string> lost() const {
    const std::scoped_lock hold(lock_);
    return lost_;
  }

  int node() const override { return node_; }
  const std::vector<control::JobNode>& nodes() const override { return nodes_; }
  void broadcast(const std::string& bytes) override {
    const std::scoped_lock hold(lock_);
    own_.push_back({control::JobEvent::Kind::Broadcast, node_, bytes});
  }
  void report_progress(const std::string&) override {}
  void set_validator(control::MessageValidator validator) override { reader_.set_validator(std::move(validator)); }
  void fail_node(int node, const std::string& why) override {
    const std::scoped_lock hold(lock_);
    if (node_ == 0) lost_.emplace(node, why);
  }
  int watch(std::vector<pollfd>&) const override { return 1; }
  std::vector<control::JobEvent> advance() override {
    const std::scoped_lock hold(lock_);
    std::vector<control::JobEvent> events = std::exchange(own_, {});
    for (const auto& [from, bytes] : coming_) {
      if (lost_.contains(from)) continue;
      auto [event, fault] = node_ == 0 ? reader_.from_member(from, bytes) : reader_.from_root(bytes);
      if (event) events.push_back(std::move(*event));
      if (fault.empty()) continue;
      lost_.emplace(from, fault);
      events.push_back({control::JobEvent::Kind::Lost, from, fault});
    }
    coming_.clear();
    return events;
  }
  void leave_to_child() override {}

 private:
  const int node_;
  const std::vector<control::JobNode> nodes_;
  mutable std::mutex lock_;
  control::JobReader reader_;
  std::vector<std::pair<int, std::string>> coming_;
  std::vector<control::JobEvent> own_;
  std::map<int, std::string> lost_;
};

}  // namespace braid
