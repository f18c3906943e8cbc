// One collective of a group of thread ranks, which works directly on the ranks' own tensors. No copies are made, and no
// rank has a special role. Matching of calls is in group.h, waiting in operation.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/comm/call_log.h"
#include "braid/comm/checked_communicator.h"
#include "braid/comm/communicator.h"
#include "braid/comm/local/combine.h"
#include "braid/comm/local/operation.h"

namespace braid::comm::local {

// The ranks of a group.
struct Membership {
  std::string name;
  std::vector<int> world_ranks;
  std::shared_ptr<WorldState> world_state;
  std::vector<std::unique_ptr<CallLog>> logs;  // by rank

  Membership(std::string the_name, std::vector<int> ranks, std::shared_ptr<WorldState> state)
      : name(std::move(the_name)), world_ranks(std::move(ranks)), world_state(std::move(state)) {
    for (size_t rank = 0; rank < world_ranks.size(); ++rank) logs.push_back(std::make_unique<CallLog>());
  }

  int size() const { return static_cast<int>(world_ranks.size()); }
};

class Collective : public Operation {
 public:
  Collective(std::shared_ptr<const Membership> members, const Call& call);

  // Attaches rank `rank`'s tensors: `in` is read, `out` is written. They are kept alive until the operation has
  // finished. Called before the rank arrives.
  void attach(int rank, const at::Tensor& in, const at::Tensor& out);

  const Call& call() const { return call_; }
  std::string label(int) const override { return label_of(call_, members_->name); }
  std::string last_call(int party) const override {
    return last_call_text(world_rank(party), members_->logs[party]->last());
  }
  std::vector<std::string> calls(int party) const override { return members_->logs[party]->lines(); }
  int world_rank(int party) const override { return members_->world_ranks[party]; }

 protected:
  const std::shared_ptr<const Membership> members_;

 private:
  void run(int64_t begin, int64_t end) override;
  void finish() override;

  void combine_all(int64_t begin, int64_t end) const;
  void scatter(int64_t begin, int64_t end) const;
  void gather(int64_t begin, int64_t end) const;
  void exchange(int64_t begin, int64_t end) const;
  void spread(int64_t begin, int64_t end) const;
  void copy(int to_rank, int64_t to, int from_rank, int64_t from, int64_t count) const;

  const Call call_;
  int64_t element_bytes_ = 1;
  Combine combine_ = nullptr;
  std::vector<at::Tensor> tensors_;  // two for each rank
  std::vector<const void*> in_;      // by rank
  std::vector<void*> out_;
};

}  // namespace braid::comm::local
