// Matches the calls of the ranks of one group. It holds those that some ranks have issued and others have not yet.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "braid/comm/local/collective.h"
#include "braid/comm/local/transfer.h"

namespace braid::comm::local {

class Group;

// A split: a collective that ends with a new group and a place in it for every rank.
class SplitCall final : public Collective {
 public:
  using Collective::Collective;

  struct SplitRequest {
    int colour, key;
    std::string name;
  };
  struct Place {
    std::shared_ptr<Group> group;
    int rank = 0;
  };
  // Called before the rank arrives.
  void request(int rank, SplitRequest request) { requests_[rank] = std::move(request); }
  // Valid after the rank has waited for the operation.
  const Place& place(int rank) const { return places_[rank]; }

 private:
  void finish() override;

  std::vector<SplitRequest> requests_ = std::vector<SplitRequest>(members_->size());
  std::vector<Place> places_ = std::vector<Place>(members_->size());
};

// A share: a collective that ends with the root's object.
class ShareCall final : public Collective {
 public:
  using Collective::Collective;

  // Called before the rank arrives.
  void offer(int rank, std::shared_ptr<void> object) {
    if (rank == call().root) object_ = std::move(object);
  }
  // Valid after the rank has waited for the operation.
  const std::shared_ptr<void>& object() const { return object_; }

 private:
  std::shared_ptr<void> object_;
};

// A group of thread ranks. Thread-safe. A call that disagrees with its peers' poisons the world and throws CommError
// naming both.
class Group {
 public:
  explicit Group(std::shared_ptr<const Membership> members) : members_(std::move(members)) {}

  const Membership& members() const { return *members_; }

  // Returns the collective that is rank `rank`'s call number `call.number`, the same object for all ranks. The rank
  // attaches its tensors afterwards.
  std::shared_ptr<Collective> join(int rank, const Call& call);
  // A message with the rank's tensor attached, and the party that the rank is.
  struct Posted {
    std::shared_ptr<Transfer> transfer;
    int party;
  };
  Posted post(int rank, const Call& call, const at::Tensor& tensor);

  // Poisons the world in the name of `rank` and throws CommError.
  [[noreturn]] void refuse(int rank, const std::string& op, const std::string& why) const;

 private:
  struct Pending {
    std::shared_ptr<Collective> collective;
    int first;   // rank that issued it first
    int joined;  // number of ranks that have issued it
  };
  // Messages of which only one side is posted. All messages of one route wait on the same side.
  struct Waiting {
    std::shared_ptr<Transfer> transfer;
    int party;
  };

  std::shared_ptr<Collective> made(const Call& call) const;

  const std::shared_ptr<const Membership> members_;
  std::mutex mutex_;
  std::map<int64_t, Pending> pending_;  // calls by number
  std::map<Transfer::Route, std::deque<Waiting>> messages_;
};

}  // namespace braid::comm::local
