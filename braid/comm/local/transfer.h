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

  Transfer(std::shared_ptr<const Membership> members, Route route, const at::Tensor& first);

  void attach(int party, const at::Tensor& tensor);
  at::ScalarType type() const { return type_; }
  int64_t count() const { return count_; }

  std::string label() const override;
  int world_rank(int party) const override;

 private:
  void run(int64_t begin, int64_t end) override;
  void finish() override;

  const std::shared_ptr<const Membership> members_;
  const Route route_;
  const at::ScalarType type_;
  const int64_t count_;
  at::Tensor tensors_[2];
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

}  // namespace braid::comm::local
