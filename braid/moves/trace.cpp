#include "braid/moves/trace.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::moves {
namespace {

// Returns the chunks of one block in one action; empty if it uses none.
std::vector<int> chunks_of(const Block& block, Op op) {
  std::vector<int> chunks;
  if (op == Op::Forward || op == Op::Recompute || goes_back(op)) chunks = block.parameters;
  if (op == Op::FullBackward || op == Op::WeightGrad) {
    chunks.insert(chunks.end(), block.gradients.begin(), block.gradients.end());
  }
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

}  // namespace

Stages make_stages(const std::vector<std::vector<int64_t>>& bytes_of_blocks, int64_t tied_bytes) {
  Stages stages;
  for (const auto& of_stage : bytes_of_blocks) {
    auto& blocks = stages.blocks.emplace_back();
    for (const int64_t bytes : of_stage) {
      blocks.push_back({{static_cast<int>(stages.chunks.size())}, {}});
      stages.chunks.push_back({bytes});
    }
  }
  if (tied_bytes == 0) return stages;
  check(!stages.blocks.empty() && !stages.blocks.front().empty() && !stages.blocks.back().empty(),
        "the first and the last block have the tied chunk");
  for (Block* block : {&stages.blocks.front().front(), &stages.blocks.back().back()}) {
    block->parameters.push_back(static_cast<int>(stages.chunks.size()));
  }
  stages.chunks.push_back({tied_bytes});
  return stages;
}

Trace trace_of(const Schedule& schedule, int rank, const Stages& stages) {
  Trace trace{stages.chunks, {}};
  const auto use = [&](const Block& block, Op op) {
    std::vector<int> chunks = chunks_of(block, op);
    if (!chunks.empty()) trace.uses.push_back({std::move(chunks)});
  };
  for (const Action& action : schedule.programs[rank]) {
    check(action.op != Op::Update, "parameters stay the same within a step");
    const std::vector<Block>& blocks = stages.blocks[action.stage];
    if (action.op == Op::Forward || action.op == Op::Recompute) {
      for (const Block& block : blocks) use(block, action.op);
    } else {
      for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) use(*block, action.op);
    }
  }
  return trace;
}

int64_t bytes_of(const std::vector<Chunk>& chunks, std::span<const int> numbers) {
  int64_t bytes = 0;
  for (const int chunk : numbers) bytes += chunks[chunk].bytes;
  return bytes;
}

int64_t least_capacity(const Trace& trace) {
  int64_t most = 0;
  for (const Use& use : trace.uses) most = std::max(most, bytes_of(trace.chunks, use.chunks));
  return most;
}

NextUse::NextUse(const Trace& trace) : num_uses_(static_cast<int>(trace.uses.size())), uses_(trace.chunks.size()) {
  for (int use = 0; use < num_uses_; ++use) {
    for (const int chunk : trace.uses[use].chunks) uses_[chunk].push_back(use);
  }
}

int NextUse::distance(int chunk, int use) const {
  const std::vector<int>& uses = uses_[chunk];
  if (uses.empty()) return kNever;
  const auto next = std::upper_bound(uses.begin(), uses.end(), use);
  return next != uses.end() ? *next - use : uses.front() + num_uses_ - use;
}

int NextUse::farthest(std::span<const int> chunks, int use) const {
  return *std::max_element(chunks.begin(), chunks.end(), [&](int a, int b) {
    const int of_a = distance(a, use), of_b = distance(b, use);
    return of_a != of_b ? of_a < of_b : a > b;
  });
}

}  // namespace braid::moves
