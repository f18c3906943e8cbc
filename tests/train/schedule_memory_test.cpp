// The memory that schedules promise, measured in bytes: an activation from its F to its I, what W needs from I to W,
// and not a byte longer, on real stages.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/generators.h"
#include "braid/train/block_executor.h"
#include "braid/train/step_schedule.h"
#include "tests/train/layout_run.h"

namespace braid::train::schedule_memory_test {
namespace {

int64_t activation_bytes(int rank) {
  return param::memory_use(rank).bytes[static_cast<size_t>(param::MemoryCategory::Activations)];
}

// Passes everything on, and looks at the account after every action.
class Watched final : public pipe::StageExecutor {
 public:
  struct Sample {
    Action action;
    int64_t bytes;  // held after it
  };

  Watched(pipe::StageExecutor& inner, int rank) : inner_(inner), rank_(rank) {}
  std::vector<Sample> samples;

  // An action's sample is taken when the next begins: what it hands to a neighbour is gone by then.
  void look() {
    if (!samples.empty()) samples.back().bytes = activation_bytes(rank_);
  }

  void forward(int stage, int micro) override { next({Op::Forward, stage, micro}), inner_.forward(stage, micro); }
  void full_backward(int stage, int micro) override {
    next({Op::FullBackward, stage, micro}), inner_.full_backward(stage, micro);
  }
  void input_grad(int stage, int micro) override {
    next({Op::InputGrad, stage, micro}), inner_.input_grad(stage, micro);
  }
  void weight_grad(int stage, int micro) override {
    next({Op::WeightGrad, stage, micro}), inner_.weight_grad(stage, micro);
  }
  void reduce_grad(int stage) override { inner_.reduce_grad(stage); }
  // Transferred tensors are counted separately: how long it stays depends on when the neighbour takes it.
  Tensors outputs(int stage, int micro) override { return copied(inner_.outputs(stage, micro)); }
  Tensors input_gradients(int stage, int micro) override { return copied(inner_.input_gradients(stage, micro)); }
  Tensors input_buffers(int stage, int micro) override { return inner_.input_buffers(stage, micro); }
  Tensors output_gradient_buffers(int stage, int micro) override {
    return inner_.output_gradient_buffers(stage, micro);
  }
  void give_inputs(int stage, int micro, Tensors tensors) override { inner_.give_inputs(stage, micro, tensors); }
  void give_output_gradients(int stage, int micro, Tensors tensors) override {
    inner_.give_output_gradients(stage, micro, tensors);
  }

 private:
  void next(const Action& action) {
    look();
    samples.push_back({action, 0});
  }
  static Tensors copied(Tensors tensors) {
    const param::MemoryScope scope(param::MemoryCategory::Communication);
    for (at::Tensor& tensor : tensors) tensor = tensor.clone();
    return tensors;
  }
  pipe::StageExecutor& inner_;
  int rank_;
};

using Samples = std::vector<Watched::Sample>;

// One step of `schedule` on thread ranks; the samples of every pipeline rank, above what was held before.
std::vector<Samples> watched_step(const RunSpec& spec, const Schedule& schedule) {
  const data::Corpus corpus = tiny_corpus();
  std::vector<Samples> all(schedule.num_ranks());
  param::install_memory_accounting();
  run_ranks(schedule.num_ranks(), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    param::account_memory_to(world.rank());
    const Groups groups(mesh::DeviceMesh(spec.mesh), StageLayout(schedule), world);
    RankModel model(spec, groups);
    const BatchSource batches(spec, {corpus.train, 1}, groups);
    BlockExecutor executor(spec, model, batches, {ExecutorMode::Training, version_plan(spec, schedule)});
    for (int step = 0; step < 2; ++step) {  // the first fills what is kept between steps
      Watched watched(executor, world.rank());
      model.sink().begin_step(groups.layout.num_microbatches(world.rank()));
      executor.begin_step(step);
      const int64_t before = activation_bytes(world.rank());
      pipe::ScheduleRuntime(schedule, world, watched).run_step();
      watched.look();
      for (auto& sample : watched.samples) sample.bytes -= before;
      EXPECT_EQ(watched.samples.back().bytes, 0) << "something of a microbatch is still held";
      all[world.rank()] = watched.samples;
    }
  });
  return all;
}

// The memory of one microbatch on a stage.
struct Held {
  int64_t activation = 0;  // M_B: from F to I
  int64_t pending = 0;     // M_W: from I to W
};

// Alone, on one rank: F through all stages, then I and W of each on the way back.
std::vector<Held> held_alone(RunSpec spec, int num_stages) {
  spec.mesh = {};
  spec.train.batch = 1;
  Schedule schedule{"alone", num_stages, 1, std::vector<int>(num_stages, 0), {{}}};
  Program& program = schedule.programs[0];
  for (int stage = 0; stage < num_stages; ++stage) program.push_back({Op::Forward, stage, 0});
  for (int stage = num_stages - 1; stage >= 0; --stage) {
    program.push_back({Op::InputGrad, stage, 0});
    program.push_back({Op::WeightGrad, stage, 0});
  }
  std::vector<Held> held(num_stages);
  int64_t before = 0;
  const auto samples = watched_step(spec, schedule);
  for (const auto& [action, bytes] : samples[0]) {
    if (action.op == Op::Forward) held[action.stage].activation = bytes - before;
    if (action.op == Op::WeightGrad) held[action.stage].pending = before - bytes;
    before = bytes;
  }
  return held;
}

// The most that a program holds after any of its actions, by its counts.
int64_t promised_peak(const Program& program, const std::vector<Held>& held) {
  int64_t now = 0, most = 0;
  for (const Action& action : program) {
    const Held& stage = held[action.stage];
    if (action.op == Op::Forward) now += stage.activation;
    if (action.op == Op::FullBackward) now -= stage.activation;
    if (action.op == Op::InputGrad) now -= stage.activation - stage.pending;
    if (action.op == Op::WeightGrad) now -= stage.pending;
    most = std::max(most, now);
  }
  return most;
}

int64_t measured_peak(const Samples& samples) {
  int64_t most = 0;
  for (const auto& sample : samples) most = std::max(most, sample.bytes);
  return most;
}

TEST(ScheduleMemory, MeasuredBytesAreThePromisedOnes) {
  constexpr int kRanks = 4, kMicrobatches = 8;
  for (const ScheduleTraits& traits : schedule_traits()) {
    if (traits.asynchronous() || !schedule_problems(traits.name, {kRanks, kMicrobatches}).empty()) continue;
    SCOPED_TRACE(std::string(traits.name));
    RunSpec spec = tiny_spec(6, kMicrobatches);
    spec.mesh.pipe = kRanks;
    spec.pipeline.schedule = traits.name;
    const Schedule schedule = step_schedule(spec);
    const std::vector<Held> held = held_alone(spec, schedule.num_stages);
    for (const Held& stage : held) EXPECT_TRUE(stage.activation > 0 && stage.pending > 0);
    const auto samples = watched_step(spec, schedule);
    for (int rank = 0; rank < kRanks; ++rank) {
      SCOPED_TRACE(cat("rank ", rank));
      EXPECT_EQ(measured_peak(samples[rank]), promised_peak(schedule.programs[rank], held));
      if (schedule.promise.peak_activations.empty() || schedule.num_stages != kRanks || schedule.mirrored()) continue;
      const int64_t activations = schedule.promise.peak_activations[rank];
      const int64_t pending = schedule.promise.peak_pending_weight_grads[rank];
      const Held& stage = held[rank];
      EXPECT_LE(measured_peak(samples[rank]), traits.splits_backward
                                                  ? pending * std::max(stage.activation, stage.pending)
                                                  : activations * stage.activation);
    }
  }
}

}  // namespace
}  // namespace braid::train::schedule_memory_test
