// A channel whose messages come late, twice, in another order, cut off, or not at all, by a seed.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "braid/base/seeds.h"
#include "braid/comm/channel.h"

namespace braid {

// Probabilities, of each message sent.
struct ChannelFaults {
  double delayed = 0;   // it overtakes nothing for a while: others go first
  double repeated = 0;  // it arrives again, later
  double cut = 0;       // its end is missing
  double dropped = 0;
};

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(std::unique_ptr<Channel> inner, ChannelFaults faults, uint64_t seed)
      : inner_(std::move(inner)), faults_(faults), seed_(seed) {}

  int num_faults() const { return num_faults_; }
  void set_faults(ChannelFaults faults) { faults_ = faults; }

  int endpoint() const override { return inner_->endpoint(); }
  int num_endpoints() const override { return inner_->num_endpoints(); }
  void close() override { inner_->close(); }

  Delivery send(int peer, int tag, ChannelMessage message) override {
    Held held{peer, tag, std::move(message)};
    if (happens(faults_.repeated)) held_.push_back(held);
    if (happens(faults_.cut)) cut(held.message);
    if (happens(faults_.dropped)) return Delivery::Accepted;
    if (happens(faults_.delayed)) {
      held_.push_back(std::move(held));
      return Delivery::Accepted;
    }
    const Delivery delivery = inner_->send(peer, tag, std::move(held.message));
    release_some();
    return delivery;
  }

  ChannelEvent recv_any(int tag, Time deadline) override {
    release_some();
    ChannelEvent event = inner_->recv_any(tag, deadline);
    if (event.kind == ChannelEvent::Kind::TimedOut) release_some();
    return event;
  }

 private:
  struct Held {
    int peer, tag;
    ChannelMessage message;
  };

  double draw() { return uniform(seed_, num_draws_++); }
  bool happens(double probability) {
    const bool yes = draw() < probability;
    num_faults_ += yes;
    return yes;
  }
  void cut(ChannelMessage& message) {
    if (message.tensors.empty()) {
      message.header.resize(static_cast<size_t>(draw() * static_cast<double>(message.header.size())));
    } else if (at::Tensor& last = message.tensors.back(); last.numel() > 0 && draw() < 0.7) {
      last = last.reshape({-1}).narrow(0, 0, static_cast<int64_t>(draw() * static_cast<double>(last.numel()))).clone();
    } else {
      message.tensors.pop_back();
    }
  }
  // About half of those that are held, from a random place on: the later ones overtake.
  void release_some() {
    std::vector<Held> stay;
    for (size_t i = held_.size(); i-- > 0;) {
      if (draw() < 0.5) {
        inner_->send(held_[i].peer, held_[i].tag, std::move(held_[i].message));
      } else {
        stay.insert(stay.begin(), std::move(held_[i]));
      }
    }
    held_ = std::move(stay);
  }

  const std::unique_ptr<Channel> inner_;
  ChannelFaults faults_;
  const uint64_t seed_;
  uint64_t num_draws_ = 0;
  int num_faults_ = 0;
  std::vector<Held> held_;
};

}  // namespace braid
