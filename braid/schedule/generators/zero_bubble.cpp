// ZB-V, and one rule for ZB-H1 and ZB-H2, which differ in a factor.
#include "braid/schedule/generators/zero_bubble.h"

#include <algorithm>

#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

void forward_and_backward(ProgramWriter& writer) {
  writer.forward(kUp);
  writer.input_grad(kUp);
  writer.weight_grad(kUp);
}

void warm_up(ProgramWriter& writer, int ranks, int rank) {
  for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) writer.forward(kDown);
  for (int i = 0; i < rank; ++i) {
    writer.forward(kUp);
    writer.forward(kDown);
  }
  for (int i = 0; i < ranks - rank; ++i) forward_and_backward(writer);
}

void run_steadily(ProgramWriter& writer, int microbatches) {
  const auto forwards = [&](int chunk) { return writer.chunk(chunk).forwards; };
  while (forwards(kUp) < forwards(kDown) || forwards(kDown) < microbatches) {
    if (forwards(kDown) < microbatches) writer.forward(kDown);
    writer.input_grad(kDown);
    writer.weight_grad(kDown);
    forward_and_backward(writer);
  }
}

void cool_down(ProgramWriter& writer, int ranks, int rank) {
  for (int i = 0; i < rank; ++i) {
    writer.input_grad(kDown);
    writer.input_grad(kUp);
  }
  for (int i = 0; i < ranks - rank; ++i) {
    writer.input_grad(kDown);
    writer.weight_grad(kDown);
  }
  for (int chunk : {kUp, kDown}) {
    while (writer.chunk(chunk).weight_grads < writer.chunk(chunk).input_grads) writer.weight_grad(chunk);
  }
}

}  // namespace

Schedule zb_v(int ranks, int microbatches) {
  Schedule schedule = laid_out({"zb-v", StagePlacement::V, ranks, microbatches, 2, 3});
  const int enough = std::max(2 * ranks - 1, microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    Program& program = schedule.programs[rank];
    ProgramWriter writer(program, {{rank}, {2 * ranks - 1 - rank}});
    warm_up(writer, ranks, rank);
    run_steadily(writer, enough);
    cool_down(writer, ranks, rank);
    std::erase_if(program, [&](const Action& action) { return action.micro >= microbatches; });
  }
  schedule.promise.peak_activations.assign(ranks, 2 * std::min(ranks, microbatches));
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
  return schedule;
}

namespace {

// Returns a schedule in which rank r runs `factor` (p-1-r) forwards ahead, and its weight passes run `factor` r passes
// behind.
Schedule handcrafted(const char* name, int ranks, int microbatches, int factor) {
  Schedule schedule = laid_out({name, StagePlacement::Linear, ranks, microbatches, 1, 3});
  for (int rank = 0; rank < ranks; ++rank) {
    ProgramWriter writer(schedule.programs[rank], {{rank}});
    const int ahead = factor * (ranks - 1 - rank);
    const int behind = factor * rank;
    for (int k = 0; k < std::min(microbatches, ahead); ++k) writer.forward(0);
    for (int k = 0; k < microbatches; ++k) {
      if (ahead + k < microbatches) writer.forward(0);
      writer.input_grad(0);
      if (k >= behind) writer.weight_grad(0);
    }
    while (writer.chunk(0).weight_grads < microbatches) writer.weight_grad(0);
    schedule.promise.peak_activations.push_back(std::min(microbatches, ahead + 1));
    schedule.promise.peak_pending_weight_grads.push_back(std::min(microbatches, ahead + 1 + behind));
  }
  return schedule;
}

}  // namespace

Schedule zb_h1(int ranks, int microbatches) { return handcrafted("zb-h1", ranks, microbatches, 1); }

Schedule zb_h2(int ranks, int microbatches) { return handcrafted("zb-h2", ranks, microbatches, 2); }

}  // namespace braid::schedule
