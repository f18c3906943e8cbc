// One message between two thread ranks. The party that waits first copies it once, from the sender's tensor to the
// receiver's. Matching of sends to receives is in group.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/local/collective.h"

namespace braid::comm::local {

class Transfer final : public Operation {
 public:
  static constexpr int kSender = 0, kReceiver = 1;  // the parties

  struct Route {
    int sender, receiver, tag;  // ranks in the group
    auto operator<=>(const Route&) const = default;
  };

  // `first` is the call of the side that comes first.
  Transfer(std::shared_ptr<const Membership> members, Route route, const Call& first, int64_t bytes);

  // Attaches a side's tensor. Called before the party arrives.
  void attach(int party, const Call& call, const at::Tensor& tensor);
  const Call& first() const { return first_; }

  std::string label(int party) const override { return transfer_label(sides_[party], rank(party), members_->name); }
  int world_rank(int party) const override { return members_->world_ranks[rank(party)]; }
  std::string last_call(int party) const override {
    return last_call_text(world_rank(party), members_->logs[rank(party)]->last());
  }
  std::vector<std::string> calls(int party) const override { return members_->logs[rank(party)]->lines(); }

 private:
  int rank(int party) const { return party == kSender ? route_.sender : route_.receiver; }
  void run(int64_t begin, int64_t end) override;
  void finish() override;

  const std::shared_ptr<const Membership> members_;
  const Route route_;
  const Call first_;
  Call sides_[2];  // by party
  at::Tensor tensors_[2];
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

}  // namespace braid::comm::local
