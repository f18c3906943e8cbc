// Each mailbox has one mutex and one condition variable. A sender holds the receiver's lock only while it appends to a
// queue.
#include "braid/comm/local/channel_hub.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "braid/base/errors.h"

namespace braid::comm::local {

class ChannelHub::Mailboxes {
 public:
  explicit Mailboxes(int count) : boxes_(static_cast<size_t>(count)) {}

  int size() const { return static_cast<int>(boxes_.size()); }

  Delivery put(int from, int to, int tag, ChannelMessage message) {
    Box& box = at(to);
    {
      const std::lock_guard lock(box.mutex);
      if (box.closed.contains(to)) return Delivery::PeerClosed;
      if (box.closed.contains(from)) return Delivery::Accepted;  // the sender closed meanwhile: the message is dropped
      box.arrived[tag].push_back({ChannelEvent::Kind::Received, from, std::move(message)});
    }
    box.changed.notify_all();
    return Delivery::Accepted;
  }

  ChannelEvent take(int owner, int tag, Channel::Time deadline) {
    Box& box = at(owner);
    std::unique_lock lock(box.mutex);
    ChannelEvent event;
    const auto found = [&] { return next(box, owner, tag, event); };
    if (deadline == Channel::kNoDeadline) {
      box.changed.wait(lock, found);
    } else {
      box.changed.wait_until(lock, deadline, found);
    }
    return event;
  }

  void close(int endpoint) {
    std::map<int, std::deque<ChannelEvent>> dropped;  // freed outside the lock
    for (Box& box : boxes_) {
      {
        const std::lock_guard lock(box.mutex);
        box.closed.insert(endpoint);
        if (&box == &at(endpoint)) dropped.swap(box.arrived);
      }
      box.changed.notify_all();
    }
  }

 private:
  struct Box {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, std::deque<ChannelEvent>> arrived;  // by tag
    std::set<int> closed;                             // endpoints whose close this mailbox knows
    std::map<int, std::set<int>> told;                // by tag: closed endpoints that take() has returned
  };

  Box& at(int endpoint) {
    check(0 <= endpoint && endpoint < size(), "an endpoint of the hub");
    return boxes_[static_cast<size_t>(endpoint)];
  }

  // Finds the next event. REQUIRES: the caller holds the box's lock.
  static bool next(Box& box, int owner, int tag, ChannelEvent& event) {
    if (box.closed.contains(owner)) {
      event = {ChannelEvent::Kind::Closed, owner, {}};
      return true;
    }
    auto& queue = box.arrived[tag];
    if (!queue.empty()) {
      event = std::move(queue.front());
      queue.pop_front();
      return true;
    }
    for (const int peer : box.closed) {
      if (!box.told[tag].insert(peer).second) continue;
      event = {ChannelEvent::Kind::Closed, peer, {}};
      return true;
    }
    return false;
  }

  std::deque<Box> boxes_;
};

class ChannelHub::Endpoint final : public Channel {
 public:
  Endpoint(std::shared_ptr<Mailboxes> mailboxes, int number) : mailboxes_(std::move(mailboxes)), number_(number) {}
  ~Endpoint() override { close(); }

  int endpoint() const override { return number_; }
  int num_endpoints() const override { return mailboxes_->size(); }
  Delivery send(int peer, int tag, ChannelMessage message) override {
    for (const at::Tensor& tensor : message.tensors) check(!tensor.is_view(), "a message's tensors are no views");
    return mailboxes_->put(number_, peer, tag, std::move(message));
  }
  ChannelEvent recv_any(int tag, Time deadline) override { return mailboxes_->take(number_, tag, deadline); }
  void close() override { mailboxes_->close(number_); }

 private:
  const std::shared_ptr<Mailboxes> mailboxes_;
  const int number_;
};

ChannelHub::ChannelHub(int num_endpoints)
    : mailboxes_(std::make_shared<Mailboxes>(num_endpoints)), taken_(static_cast<size_t>(num_endpoints)) {
  check(num_endpoints > 0, "a hub has endpoints");
}

ChannelHub::~ChannelHub() { close_untaken(); }

void ChannelHub::close_untaken() {
  for (int number = 0; number < mailboxes_->size(); ++number) {
    if (!taken_[static_cast<size_t>(number)].exchange(true)) mailboxes_->close(number);
  }
}

std::unique_ptr<Channel> ChannelHub::endpoint(int number) {
  check(0 <= number && number < mailboxes_->size(), "an endpoint of the hub");
  check(!taken_[static_cast<size_t>(number)].exchange(true), "an endpoint is taken once");
  return std::make_unique<Endpoint>(mailboxes_, number);
}

}  // namespace braid::comm::local
