// The orders over chunks. All ranks share one table of passes. They differ in the number of forwards that they run
// ahead.
#include "braid/schedule/generators/interleaved.h"

#include <algorithm>
#include <tuple>

#include "braid/base/text.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

int chunks_of(const ScheduleRequest& request) { return request.chunks > 0 ? request.chunks : 2; }

int rounds(int ranks, int microbatches) { return std::max(1, microbatches / ranks); }

int group_of(const ScheduleRequest& request) {
  return request.group > 0 ? request.group : request.microbatches / rounds(request.ranks, request.microbatches);
}

bool fits(int ranks, int microbatches, int group) {
  const int rest = microbatches % group;
  return ranks <= group && group <= microbatches && (rest == 0 || rest >= ranks);
}

// Appends passes to the program of a rank: forwards in the order of the table, and backwards in the same order with
// chunks counted from the last.
class Interleaver {
 public:
  Interleaver(const ScheduleRequest& request, const std::vector<ChunkPass>& passes, int rank, Program& program)
      : passes_(passes), ranks_(request.ranks), last_chunk_(chunks_of(request) - 1), rank_(rank), program_(program) {}

  int size() const { return static_cast<int>(passes_.size()); }
  void forward(int index) { put(Op::Forward, passes_[index].chunk, passes_[index].micro); }
  void backward(Op op, int index) { put(op, last_chunk_ - passes_[index].chunk, passes_[index].micro); }

 private:
  void put(Op op, int chunk, int micro) { program_.push_back({op, chunk * ranks_ + rank_, micro}); }

  const std::vector<ChunkPass>& passes_;
  const int ranks_, last_chunk_, rank_;
  Program& program_;
};

Layout loop(const char* name, const ScheduleRequest& request, int passes) {
  return {name, StagePlacement::Loop, request.ranks, request.microbatches, chunks_of(request), passes};
}

std::vector<ChunkPass> passes_of(const ScheduleRequest& request) {
  return chunk_passes(request.microbatches, chunks_of(request), group_of(request));
}

}  // namespace

std::vector<ChunkPass> chunk_passes(int microbatches, int chunks, int group) {
  std::vector<ChunkPass> passes;
  passes.reserve(static_cast<size_t>(microbatches) * chunks);
  for (int begin = 0; begin < microbatches; begin += group) {
    const int end = std::min(microbatches, begin + group);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int micro = begin; micro < end; ++micro) passes.push_back({micro, chunk});
    }
  }
  return passes;
}

std::vector<Problem> interleaved_problems(const ScheduleRequest& request) {
  const auto [p, m, n] = std::tuple(request.ranks, request.microbatches, request.group);
  if (n == 0) {
    const auto even = [p](int micros) { return micros % rounds(p, micros) == 0; };
    if (even(m)) return {};
    return {{"microbatches", std::to_string(m), cat("must be a multiple of microbatches / ranks (", rounds(p, m), ")"),
             nearest_number(m, {1, m + p}, even)}};
  }
  if (m < p) {
    return {{"microbatches", std::to_string(m), cat("must be at least ranks (", p, ") when a group is given"),
             std::to_string(p)}};
  }
  if (n > 0 && fits(p, m, n)) return {};
  return {{"group", std::to_string(n),
           cat("must be from ranks (", p, ") to microbatches (", m, ") and leave a rest of 0 or at least ", p),
           nearest_number(n, {p, m}, [&, m = m](int group) { return fits(p, m, group); })}};
}

Schedule interleaved(const ScheduleRequest& request) {
  Schedule schedule = laid_out(loop("interleaved", request, 2));
  const std::vector<ChunkPass> passes = passes_of(request);
  for (int rank = 0; rank < request.ranks; ++rank) {
    Interleaver order(request, passes, rank, schedule.programs[rank]);
    const int ahead = 2 * (request.ranks - 1 - rank) + (chunks_of(request) - 1) * group_of(request);
    for (int i = 0; i < std::min(order.size(), ahead); ++i) order.forward(i);
    for (int i = 0; i < order.size(); ++i) {
      if (ahead + i < order.size()) order.forward(ahead + i);
      order.backward(Op::FullBackward, i);
    }
    schedule.promise.peak_activations.push_back(std::min(order.size(), ahead + 1));
  }
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
  return schedule;
}

Schedule interleaved_zero_bubble(const ScheduleRequest& request) {
  Schedule schedule = laid_out(loop("interleaved-zb", request, 3));
  const std::vector<ChunkPass> passes = passes_of(request);
  for (int rank = 0; rank < request.ranks; ++rank) {
    Interleaver order(request, passes, rank, schedule.programs[rank]);
    const int ahead = request.ranks - 1 - rank + (chunks_of(request) - 1) * group_of(request);
    const int behind = rank;
    for (int i = 0; i < std::min(order.size(), ahead); ++i) order.forward(i);
    for (int i = 0; i < order.size() + behind; ++i) {
      if (ahead + i < order.size()) order.forward(ahead + i);
      if (i < order.size()) order.backward(Op::InputGrad, i);
      if (i >= behind) order.backward(Op::WeightGrad, i - behind);
    }
    schedule.promise.peak_activations.push_back(std::min(order.size(), ahead + 1));
    schedule.promise.peak_pending_weight_grads.push_back(std::min(order.size(), ahead + 1 + behind));
  }
  return schedule;
}

Schedule looped_bfs(const ScheduleRequest& request) {
  Schedule schedule = laid_out(loop("looped-bfs", request, 2));
  const int chunks = chunks_of(request);
  for (int rank = 0; rank < request.ranks; ++rank) {
    const auto put = [&](Op op, int chunk, int micro) {
      schedule.programs[rank].push_back({op, chunk * request.ranks + rank, micro});
    };
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int micro = 0; micro < request.microbatches; ++micro) put(Op::Forward, chunk, micro);
    }
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
      for (int micro = request.microbatches - 1; micro >= 0; --micro) put(Op::FullBackward, chunk, micro);
    }
  }
  schedule.promise.peak_activations.assign(request.ranks, request.microbatches * chunks);
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
  return schedule;
}

}  // namespace braid::schedule
