// The sink of a rank that holds copies of rows, as neighbouring tensor ranks do of key heads that they share
// (mesh::Piece::copies). Each of these ranks computes the part of the rows' gradient that belongs to its queries.
#pragma once

#include <memory>
#include <optional>

#include "braid/comm/communicator.h"
#include "braid/param/grad_sink.h"

namespace braid::sync {

// Sums the gradients of copies over the ranks that hold them, for each microbatch before the next sink has it. So
// microbatches and replicas are added in the same order as without copies, and copies stay equal.
class CopiesSink final : public param::GradSink {
 public:
  // `holders` are the ranks that hold the same copies. All ranks write the same gradients in the same order.
  CopiesSink(std::unique_ptr<param::GradSink> sink, std::unique_ptr<Communicator> holders);

  param::GradSlot open(const param::Parameter& param, int use, int micro) override;
  // Throws CommError. Collective over the holders if the parameter has copies.
  void close(const param::Parameter& param, int use, int micro) override;
  void begin_step(int num_microbatches) override { sink_->begin_step(num_microbatches); }

 private:
  std::unique_ptr<param::GradSink> sink_;
  std::unique_ptr<Communicator> holders_;
  // The slot that is open: the elements of copies, and what they were before if the gradient is added to them.
  std::vector<at::Tensor> copies_, before_;
};

// Returns the tensor rank that holds copy 0 of the rows of which `tensor_rank` holds copies; nothing if its store has
// no copies.
std::optional<int> first_holder(const param::ParamStore& store, int tensor_rank);

}  // namespace braid::sync
