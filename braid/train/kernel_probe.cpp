// Rounds of a block, as many on every rank.
#include "braid/train/kernel_probe.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "braid/base/median.h"
#include "braid/ckpt/all_or_none.h"
#include "braid/param/uncounted_scope.h"
#include "braid/train/all_reduced.h"
#include "braid/train/block_in_training.h"
#include "braid/train/timed_block.h"

namespace braid {
namespace {

constexpr int kFewestRounds = 2, kMostRounds = 200;
constexpr double kBlockBudget = 0.3;  // seconds of a block
constexpr double kTooLong = 0.2;      // of one round; no wider block is tried then

// One head is 32 or 64 wide; no product of one has as many operations as one of another.
struct StandIn {
  int width, heads, context, microbatch;
};
constexpr StandIn kStandIns[] = {{32, 1, 16, 4}, {64, 1, 64, 4}, {192, 3, 256, 2}, {512, 8, 1024, 1}};

RunSpec spec_of(const StandIn& block, DType dtype) {
  RunSpec spec;
  spec.train.dtype = dtype;
  spec.train.microbatch = block.microbatch;
  spec.model.context = block.context;
  spec.model.heads = block.heads;
  spec.model.width = block.width;
  return spec;
}

double mean_of_ranks(double value, Communicator& ranks) {
  return all_reduced(value, ReduceOp::Sum, ranks) / ranks.size();
}

// Of what has rounds, which return their seconds.
template <class Block>
struct Warm {
  std::unique_ptr<Block> block;
  double seconds = 0;  // of its first round
};

// The first round takes all the memory that a block ever has.
template <class Block, class... Args>
Warm<Block> warm(Communicator& ranks, Args&&... args) {
  Warm<Block> warm;
  const auto begin = [&] {
    warm.block = std::make_unique<Block>(args...);
    warm.seconds = warm.block->round();
  };
  all_or_none(begin, ranks);
  return warm;
}

// As many on every rank: what the slowest one's first suggests.
int num_rounds(double seconds, Communicator& ranks) {
  return std::clamp(static_cast<int>(kBlockBudget / all_reduced(seconds, ReduceOp::Max, ranks)), kFewestRounds,
                    kMostRounds);
}

// `round` returns its seconds. Returns those of the shortest, on the slowest rank: a passing load does not lengthen it.
template <class Round>
double repeat(const Round& round, int rounds, Communicator& ranks) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) shortest = std::min(shortest, round());
  return all_reduced(shortest, ReduceOp::Max, ranks);
}

// Layers of the same size stand for one, as fast as both together.
std::vector<ProductSpeed> product_speeds(const std::vector<TimedLinear>& layers, Communicator& ranks) {
  std::vector<std::pair<double, std::vector<double>>> sizes;  // operations, medians
  for (const TimedLinear& layer : layers) {
    auto size = std::ranges::find(sizes, layer.flops(), &std::pair<double, std::vector<double>>::first);
    if (size == sizes.end()) size = sizes.insert(size, {layer.flops(), {}});
    size->second.push_back(median(layer.all_seconds));
  }
  std::ranges::sort(sizes);
  std::vector<ProductSpeed> speeds;
  for (const auto& [flops, medians] : sizes) {
    double seconds = 0;
    for (const double one : medians) seconds += one;
    const double of_pass = 3 * flops * static_cast<double>(medians.size());
    speeds.push_back({flops, mean_of_ranks(of_pass / seconds, ranks)});
  }
  return speeds;
}

RunSpec without_tensor_ranks(RunSpec spec) {
  spec.mesh.tensor = 1;
  return spec;
}

// A block of a tensor rank, by kernels, and the block of all tensor ranks, by kernels and whole.
class BlockProbe {
 public:
  BlockProbe(const RunSpec& spec, at::Device device, Communicator& ranks, Communicator& self)
      : kernels_(spec, device, ranks), whole_(without_tensor_ranks(spec), self) {
    if (spec.mesh.tensor > 1) all_kernels_ = std::make_unique<TimedBlock>(without_tensor_ranks(spec), device, ranks);
  }

  double round() { return kernels_.round() + (all_kernels_ ? all_kernels_->round() : 0) + whole_.round(); }

  const TimedBlock& kernels() const { return kernels_; }
  CopySpeed elementwise() const {
    const TimedBlock& all = all_kernels_ ? *all_kernels_ : kernels_;
    const TimedElements& elements = all.elements();
    const BlockRemainder rest{whole_.seconds(), all.product_seconds(), whole_.streamed_bytes()};
    return {elements.tensor_bytes(), rest.bytes_per_second(elements.bytes_per_second())};
  }

 private:
  TimedBlock kernels_;
  std::unique_ptr<TimedBlock> all_kernels_;  // where tensor ranks share them
  BlockInTraining whole_;
};

struct MeasuredBlock {
  BlockSpeed speed;
  double round_seconds = 0;
};

MeasuredBlock measured(const RunSpec& spec, at::Device device, Communicator& ranks) {
  const c10::AutoGradMode no_grad(false);
  const UncountedScope uncounted;
  const auto self = ranks.split(ranks.rank(), 0, "block");
  const Warm<BlockProbe> warmed = warm<BlockProbe>(ranks, spec, device, ranks, *self);
  BlockProbe& probe = *warmed.block;
  const int rounds = num_rounds(warmed.seconds, ranks);
  const double round_seconds = repeat([&] { return probe.round(); }, rounds, ranks);
  const TimedAttention& attention = probe.kernels().attention();
  const CopySpeed elementwise = probe.elementwise();
  return {{product_speeds(probe.kernels().layers(), ranks),
           {attention.context(), mean_of_ranks(attention.forward_rate(), ranks),
            mean_of_ranks(attention.backward_rate(), ranks)},
           {elementwise.bytes, mean_of_ranks(elementwise.bytes_per_second, ranks)}},
          round_seconds};
}

}  // namespace

BlockSpeed measured_block(const RunSpec& spec, at::Device device, Communicator& ranks) {
  return measured(spec, device, ranks).speed;
}

std::vector<BlockSpeed> measured_blocks(DType dtype, at::Device device, Communicator& ranks) {
  std::vector<BlockSpeed> speeds;
  for (const StandIn& block : kStandIns) {
    MeasuredBlock found = measured(spec_of(block, dtype), device, ranks);
    speeds.push_back(std::move(found.speed));
    if (found.round_seconds > kTooLong) break;
  }
  return speeds;
}

double BlockRemainder::bytes_per_second(double most) const {
  return whole > products ? std::min(most, bytes / (whole - products)) : most;
}

double BlockSeconds::skew() const { return std::max(0.0, (in_step - sums) / apart - 1); }

double measured_skew(const RunSpec& spec, at::Device device, Communicator& ranks) {
  const c10::AutoGradMode no_grad(false);
  const UncountedScope uncounted;
  const Warm<TimedBlock> warmed = warm<TimedBlock>(ranks, spec, device, ranks);
  TimedBlock& block = *warmed.block;
  BlockSeconds of_block;
  const auto round = [&] {  // in turns, since hosts change their speed
    const double apart = block.round();
    ranks.barrier().wait_host();  // else who was faster apart would wait in step
    const double in_step = block.round_in_step(), sums = block.sums();
    of_block.apart += apart, of_block.in_step += in_step, of_block.sums += sums;
    return apart + in_step + sums;
  };
  repeat(round, num_rounds(2 * warmed.seconds, ranks), ranks);
  for (double* seconds : {&of_block.apart, &of_block.in_step, &of_block.sums}) {
    *seconds = mean_of_ranks(*seconds, ranks);
  }
  return of_block.skew();
}

}  // namespace braid
