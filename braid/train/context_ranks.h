// The groups in which the ranks that have parts of the same sequences compute attention.
#pragma once

#include <memory>

#include "braid/nn/context_group.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

class ContextRanks {
 public:
  ContextRanks() = default;  // of one rank, which has all tokens
  // `all` are the ranks of the context axis, of the size of mesh.context, and outlive this. Collective over them.
  ContextRanks(const RunSpec& spec, Communicator& all);

  const nn::ContextGroup& group() const { return group_; }

 private:
  std::unique_ptr<Communicator> exchange_, ring_;
  nn::ContextGroup group_;
};

}  // namespace braid::train
