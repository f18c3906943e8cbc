// One rank's part of a collective between processes: which rounds it is cut into, and what is copied and combined in
// each. It does not wait: collective_queue.h calls its steps when the peers are ready for them.
//
// A round passes in three steps, each of which needs all members to have done the one before:
//
//   post      copies what the others need of this rank's tensor into its slot
//   combine   all_reduce of much data of more than two: each member combines its share of the round and lays it out in
//             its slot
//   read      copies or combines what this rank needs into its tensor
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "braid/comm/local/combine.h"
#include "braid/comm/shm/operation.h"

namespace braid::comm::shm {

class Collective final : public Operation {
 public:
  Collective(std::shared_ptr<const Group> group, int rank, int64_t number, const Call& call);

  // Read from `in`, written to `out`; kept alive until the collective is done. Before its arrival.
  void attach(const at::Tensor& in, const at::Tensor& out);

  const Call& call() const { return call_; }
  int64_t rounds() const { return rounds_; }
  // Whether combine() does anything, the same on all members.
  bool shares() const { return shares_; }

  void post(int64_t round, Slot& own) const;
  void combine(int64_t round, std::span<Slot* const> slots) const;  // slots by rank
  void read(int64_t round, std::span<Slot* const> slots) const;
  // All rounds have been read.
  void complete();

  std::string label() const override;
  std::vector<int> missing() const override;
  int lost() const override;

 private:
  struct Stretch {
    int64_t first, count;  // elements of a chunk
  };
  struct Share {
    int64_t begin, end;  // elements of a stretch
  };

  Stretch stretch(int64_t round) const;
  Share share(const Stretch& stretch, int rank) const;
  bool has_arrived(int member) const;
  void post_shares(const Stretch& stretch, Slot& own) const;
  void post_chunks(const Stretch& stretch, Slot& own) const;
  void read_shares(const Stretch& stretch, std::span<Slot* const> slots) const;
  void read_sum(const Stretch& stretch, std::span<Slot* const> slots) const;
  void read_chunks(const Stretch& stretch, std::span<Slot* const> slots) const;
  void copy(std::byte* to, const std::byte* from, int64_t count) const;
  // What `rank` gives for this rank's chunk of the stretch.
  const std::byte* given(int rank, const Stretch& stretch, std::span<Slot* const> slots) const;
  const std::byte* in_at(int64_t element) const { return in_ + element * element_bytes_; }
  std::byte* out_at(int64_t element) const { return out_ + element * element_bytes_; }

  const std::shared_ptr<const Group> group_;
  const int rank_;
  const int64_t number_;
  const Call call_;
  const int64_t element_bytes_;
  const bool shares_;
  int64_t capacity_ = 1;  // elements of a chunk in a round
  int64_t rounds_ = 1;
  comm::local::Combine combine_ = nullptr;
  at::Tensor tensors_[2];
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

}  // namespace braid::comm::shm
