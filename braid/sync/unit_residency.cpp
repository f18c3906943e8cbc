#include "braid/sync/unit_residency.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/param/block_memory.h"
#include "braid/param/memory_account.h"
#include "braid/spec/run_spec.h"

namespace braid::sync {
namespace {

std::vector<moves::Chunk> chunks_of(const param::ParamStore& store) {
  std::vector<moves::Chunk> chunks;
  for (int unit = 0; unit < store.num_gathered(); ++unit) {
    chunks.push_back({param::bytes_on_blocks(store.gathered_data(unit))});
  }
  return chunks;
}

// The bytes of one use and the next one, whose units are read meanwhile where nothing stays.
int64_t most_at_once(const moves::Trace& trace) {
  int64_t most = 0;
  for (size_t use = 0; use + 1 < trace.uses.size(); ++use) {
    const std::vector<int>&now = trace.uses[use].chunks, &next = trace.uses[use + 1].chunks;
    std::vector<int> both;
    std::ranges::set_union(now, next, std::back_inserter(both));
    most = std::max(most, moves::bytes_of(trace.chunks, both));
  }
  return most;
}

// Returns the bytes of a transformer block: most uses are of one. Tables may be larger than blocks, and are loaded
// ahead as far as there is space.
int64_t median_use(const moves::Trace& trace) {
  std::vector<int64_t> bytes;
  for (const moves::Use& use : trace.uses) bytes.push_back(moves::bytes_of(trace.chunks, use.chunks));
  const auto middle = bytes.begin() + std::ssize(bytes) / 2;
  std::ranges::nth_element(bytes, middle);
  return *middle;
}

int64_t used_bytes(const moves::Trace& trace) {
  std::vector<bool> used(trace.chunks.size());
  for (const moves::Use& use : trace.uses) {
    for (const int chunk : use.chunks) used[chunk] = true;
  }
  int64_t bytes = 0;
  for (size_t chunk = 0; chunk < used.size(); ++chunk) bytes += used[chunk] ? trace.chunks[chunk].bytes : 0;
  return bytes;
}

moves::Request request_for(int64_t capacity) {
  return {.capacity = capacity, .policy = moves::Policy::NextUse, .step_end = moves::StepEnd::Drop};
}

}  // namespace

UnitResidency::UnitResidency(const param::ParamStore& store, Communicator& shards, const ParameterMemory& memory)
    : shards_(shards),
      memory_(memory),
      residency_(chunks_of(store), request_for(std::numeric_limits<int64_t>::max())),
      way_(memory.limit > 0 && store.has_parameters_on_disk() ? Way::Traced : Way::EachUse) {}

std::optional<std::string> UnitResidency::decide() {
  if (way_ != Way::Traced || !residency_.table()) return std::nullopt;
  const std::optional<int> rank = param::accounted_rank();
  const int64_t beside = std::max(memory_.beside, rank ? param::peak_beside_parameters(*rank) : 0);
  const int64_t space = bytes_for_parameters(memory_.limit, beside);
  const int64_t capacity = comm::agree(shards_, "memory for parameters", space, ReduceOp::Min);
  const std::string each_use = human_bytes(static_cast<double>(traced_bytes_));
  if (!follow_table(capacity)) {
    way_ = Way::EachUse;
    return cat("no parameters stay in memory between uses, for which memory.limit_gb leaves too little: a step reads ",
               each_use, " of them from disk");
  }
  way_ = Way::Table;
  const double bytes = moves::loaded_bytes(residency_.planned(), *residency_.table()) / shards_.size();
  return cat("parameters stay in memory between uses where memory.limit_gb leaves ",
             human_bytes(static_cast<double>(capacity)), " for them: a step reads ", human_bytes(bytes),
             " of them from disk, not ", each_use);
}

// Plans the traced step for memory of `capacity` bytes. Returns false if that holds less than the traced step has held,
// or saves no reads.
bool UnitResidency::follow_table(int64_t capacity) {
  const moves::Trace trace = residency_.planned();
  if (capacity < most_at_once(trace)) return false;
  moves::Request request = request_for(capacity);
  if (capacity < used_bytes(trace)) request.ahead = median_use(trace);
  residency_.plan_with(request);
  return moves::loaded_bytes(trace, *residency_.table()) / shards_.size() < static_cast<double>(traced_bytes_);
}

moves::Moves UnitResidency::begin_step() {
  in_step_ = way_ != Way::EachUse;
  return decides() ? residency_.begin_step() : moves::Moves();
}

moves::Moves UnitResidency::before_use(const std::vector<int>& units) {
  if (!in_step_) return {};
  moves::Moves moves = residency_.before_use(units);
  return decides() ? std::move(moves) : moves::Moves();
}

moves::Moves UnitResidency::after_use(const std::vector<int>& units) {
  if (!in_step_) return {};
  moves::Moves moves = residency_.after_use(units);
  return decides() ? std::move(moves) : moves::Moves();
}

moves::Moves UnitResidency::end_step(int64_t bytes_read) {
  if (!in_step_) return {};
  moves::Moves moves = residency_.clear();
  if (!decides()) {
    moves = {};
    traced_bytes_ = bytes_read;
  }
  in_step_ = false;
  return moves;
}

}  // namespace braid::sync
