// Sums in the slot itself. A slot that holds other microbatches already is emptied first and added to afterwards.
#include "braid/sync/copies_sink.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/comm/op_name.h"
#include "braid/mesh/flat_range.h"
#include "braid/param/memory_account.h"

namespace braid::sync {
namespace {

// Returns the local elements of which `copies` ranks hold copies.
std::vector<mesh::ElementRun> runs_with(int copies, const mesh::Placement& placement) {
  std::vector<mesh::Piece> pieces = placement.pieces;
  std::erase_if(pieces, [&](const mesh::Piece& piece) { return piece.copies != copies; });
  return pieces.empty() ? std::vector<mesh::ElementRun>() : mesh::runs_of(pieces, placement.local_shape);
}

}  // namespace

CopiesSink::CopiesSink(std::unique_ptr<param::GradSink> sink, CopyHolders holders)
    : sink_(std::move(sink)), holders_(std::move(holders)) {
  sink_->on_ready = [this](const param::Parameter& param) {
    if (on_ready) on_ready(param);
  };
}

param::GradSlot CopiesSink::open(const param::Parameter& param, int use, int micro) {
  check(open_.empty(), "one slot is open at a time");
  param::GradSlot slot = sink_->open(param, use, micro);
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  for (const auto& [number, holders] : holders_) {
    for (const mesh::ElementRun& run : runs_with(number, param.placement)) {
      Copies copies{holders.get(), slot.target.view({-1}).narrow(0, run.begin, run.end - run.begin), {}};
      if (slot.beta != 0) {
        copies.before = copies.elements.clone();
        copies.elements.zero_();
      }
      open_.push_back(std::move(copies));
    }
  }
  return slot;
}

void CopiesSink::close(const param::Parameter& param, int use, int micro) {
  const comm::CallName name(open_.empty() ? comm::OpName() : comm::OpName(param.name));
  for (const Copies& copies : std::exchange(open_, {})) {
    copies.holders->all_reduce(copies.elements, ReduceOp::Sum).order_before(copies.holders->queue());
    if (copies.before.defined()) copies.elements.add_(copies.before);
  }
  sink_->close(param, use, micro);
}

std::set<int> numbers_of_copies(const param::ParamStore& store) {
  std::set<int> numbers;
  for (const param::Parameter& param : store.params()) {
    for (const mesh::Piece& piece : param.placement.pieces) numbers.insert(piece.copies);
  }
  numbers.erase(1);
  return numbers;
}

}  // namespace braid::sync
