// Sums in the slot itself. A slot that holds other microbatches already is emptied first and added to afterwards.
#include "braid/sync/copies_sink.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/mesh/flat_range.h"
#include "braid/param/memory_account.h"

namespace braid::sync {
namespace {

std::vector<mesh::Piece> copied_pieces(const param::Parameter& param) {
  std::vector<mesh::Piece> pieces = param.placement.pieces;
  std::erase_if(pieces, [](const mesh::Piece& piece) { return piece.copies == 1; });
  return pieces;
}

}  // namespace

CopiesSink::CopiesSink(std::unique_ptr<param::GradSink> sink, std::unique_ptr<Communicator> holders)
    : sink_(std::move(sink)), holders_(std::move(holders)) {
  sink_->on_ready = [this](const param::Parameter& param) {
    if (on_ready) on_ready(param);
  };
}

param::GradSlot CopiesSink::open(const param::Parameter& param, int use, int micro) {
  check(copies_.empty(), "one slot is open at a time");
  param::GradSlot slot = sink_->open(param, use, micro);
  const std::vector<mesh::Piece> pieces = copied_pieces(param);
  if (pieces.empty()) return slot;
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  for (const mesh::ElementRun& run : mesh::runs_of(pieces, param.placement.local_shape)) {
    copies_.push_back(slot.target.view({-1}).narrow(0, run.begin, run.end - run.begin));
    if (slot.beta == 0) continue;
    before_.push_back(copies_.back().clone());
    copies_.back().zero_();
  }
  return slot;
}

void CopiesSink::close(const param::Parameter& param, int use, int micro) {
  const auto copies = std::exchange(copies_, {}), before = std::exchange(before_, {});
  for (size_t i = 0; i < copies.size(); ++i) {
    holders_->all_reduce(copies[i], ReduceOp::Sum).order_before(holders_->queue());
    if (!before.empty()) copies[i].add_(before[i]);
  }
  sink_->close(param, use, micro);
}

std::optional<int> first_holder(const param::ParamStore& store, int tensor_rank) {
  for (const param::Parameter& param : store.params()) {
    const std::vector<mesh::Piece> pieces = copied_pieces(param);
    if (!pieces.empty()) return tensor_rank - pieces.front().copy;
  }
  return std::nullopt;
}

}  // namespace braid::sync
