// The eight steps of DualPipe and DualPipeV, the same for both. A rank runs two flows of microbatches: it is near the
// beginning of one and near the end of the other. The schedules differ in where the flows turn around.
#include "braid/schedule/generators/dual_pipe.h"

#include "braid/base/text.h"
#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

constexpr int kNear = 0;  // the chunk of a rank in the flow that reaches the rank first
constexpr int kFar = 1;   // the chunk in the flow that comes from the other side

// The index of a rank among the `half` ranks from the entrance of a flow (0) to the place where it meets the other flow
// (half - 1), and the number of microbatches of each flow.
struct Place {
  int half;
  int index;
  int microbatches;

  int before() const { return half - 1 - index; }  // number of ranks after this one, up to the meeting place
  bool at_meeting() const { return before() == 0; }
};

class DualWriter {
 public:
  DualWriter(ProgramWriter& writer, const Place& place) : writer_(writer), place_(place) {}

  void write() {
    fill();
    run_steadily();
    drain();
  }

 private:
  // Steps 1 to 3.
  void fill() {
    for (int i = 0; i < 2 * place_.before(); ++i) writer_.forward(kNear);
    for (int i = 0; i <= place_.index; ++i) {
      writer_.forward(kNear);
      writer_.forward(kFar);
    }
    for (int i = 0; i < place_.before(); ++i) {
      writer_.input_grad(kFar);
      writer_.oldest_weight_grad();
      writer_.forward(kFar);
    }
  }

  // Steps 4 and 5. On the rank where the flows meet, the first two passes are not fused, because the backward would
  // wait for the end of the forward.
  void run_steadily() {
    for (int i = 0; i < place_.microbatches - 2 * place_.half + place_.index + 1; ++i) {
      if (i == 0 && place_.at_meeting()) {
        writer_.forward(kNear);
        writer_.full_backward(kFar);
      } else {
        writer_.fused(kNear, kFar);
      }
      writer_.fused(kFar, kNear);
    }
    for (int i = 0; i < place_.before(); ++i) {
      writer_.full_backward(kFar);
      writer_.fused(kFar, kNear);
    }
  }

  // Steps 6 to 8. From the middle of the backwards on, weight passes are deferred.
  void drain() {
    for (int i = 0; i < 2 * (place_.index + 1); ++i) backward(i % 2 == 0 ? kFar : kNear, i > place_.index);
    for (int i = 0; i < place_.before(); ++i) {
      writer_.oldest_weight_grad();
      writer_.input_grad(kNear);
    }
    for (int i = 0; i <= place_.index; ++i) writer_.oldest_weight_grad();
  }

  void backward(int chunk, bool weights_wait) {
    if (weights_wait) {
      writer_.input_grad(chunk);
    } else {
      writer_.full_backward(chunk);
    }
  }

  ProgramWriter& writer_;
  const Place place_;
};

Problem at_least(const char* key, int value, int least) {
  return {key, std::to_string(value), cat("must be at least 2 x ranks (", least, ")"), std::to_string(least)};
}

void promise(Schedule& schedule, int held) {
  schedule.promise.peak_activations.assign(schedule.num_ranks(), held);
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
}

}  // namespace

std::vector<Problem> dual_pipe_problems(const ScheduleRequest& request) {
  std::vector<Problem> problems;
  const auto even = [](int number) { return number % 2 == 0; };
  const auto refuse = [&](const char* key, int value, std::string rule) {
    problems.push_back({key, std::to_string(value), std::move(rule), nearest_number(value, {2, value + 1}, even)});
  };
  if (!even(request.ranks)) refuse("ranks", request.ranks, "must be even, as every rank has a partner");
  const int ranks = request.ranks + request.ranks % 2;
  if (request.microbatches < 2 * ranks) {
    problems.push_back(at_least("microbatches", request.microbatches, 2 * ranks));
  } else if (!even(request.microbatches)) {
    refuse("microbatches", request.microbatches, "must be even, one half for each direction");
  }
  return problems;
}

Schedule dual_pipe(int ranks, int microbatches) {
  Schedule schedule = laid_out({"dualpipe", StagePlacement::Mirrored, ranks, microbatches, 1, 3});
  const int half = ranks / 2;
  for (int rank = 0; rank < ranks; ++rank) {
    const ProgramWriter::Chunk first{rank, 0}, second{ranks - 1 - rank, schedule.mirror_from};
    const bool front = rank < half;
    ProgramWriter writer(schedule.programs[rank], front ? std::vector{first, second} : std::vector{second, first});
    DualWriter(writer, {half, front ? rank : ranks - 1 - rank, microbatches / 2}).write();
  }
  promise(schedule, ranks + 1);
  return schedule;
}

std::vector<Problem> dual_pipe_v_problems(const ScheduleRequest& request) {
  if (request.microbatches >= 2 * request.ranks) return {};
  return {at_least("microbatches", request.microbatches, 2 * request.ranks)};
}

Schedule dual_pipe_v(int ranks, int microbatches) {
  Schedule schedule = laid_out({"dualpipev", StagePlacement::V, ranks, microbatches, 2, 3});
  for (int rank = 0; rank < ranks; ++rank) {
    ProgramWriter writer(schedule.programs[rank], {{rank}, {2 * ranks - 1 - rank}});
    DualWriter(writer, {ranks, rank, microbatches}).write();
  }
  promise(schedule, 2 * ranks + 1);
  return schedule;
}

}  // namespace braid::schedule
