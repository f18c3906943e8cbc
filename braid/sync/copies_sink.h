// The sink of a rank that holds copies of rows (mesh::Piece::copies). Neighbouring tensor ranks hold copies of the key
// heads that they share: each computes the part of the rows' gradient that belongs to its queries. Under sequence
// parallelism all tensor ranks hold copies of norms, and each computes the part that belongs to its tokens.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/grad_sink.h"

namespace braid::sync {

// The ranks that hold the same copies as this one, by the number of copies.
using CopyHolders = std::map<int, std::unique_ptr<Communicator>>;

// Sums the gradients of copies over the ranks that hold them, for each microbatch before the next sink has it. So
// microbatches and replicas are added in the same order as without copies, and copies stay equal.
class CopiesSink final : public param::GradSink {
 public:
  // All holders write the same gradients in the same order.
  CopiesSink(std::unique_ptr<param::GradSink> sink, CopyHolders holders);

  param::GradSlot open(const param::Parameter& param, int use, int micro) override;
  // Throws CommError. Collective over the holders if the parameter has copies.
  void close(const param::Parameter& param, int use, int micro) override;
  void begin_step(int num_microbatches) override { sink_->begin_step(num_microbatches); }

 private:
  std::unique_ptr<param::GradSink> sink_;
  CopyHolders holders_;
  // Elements of the open slot that other ranks hold too, and their values before if the gradient is added to them.
  struct Copies {
    Communicator* holders;
    at::Tensor elements, before;
  };
  std::vector<Copies> open_;
};

// Returns the numbers of copies that pieces of the store's parameters have, but for 1.
std::set<int> numbers_of_copies(const param::ParamStore& store);

}  // namespace braid::sync
