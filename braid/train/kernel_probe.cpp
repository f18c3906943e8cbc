// Times a block in rounds. All ranks run equally many.
#include "braid/train/kernel_probe.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "braid/base/median.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/agree.h"
#include "braid/layout/parameters.h"
#include "braid/param/memory_account.h"
#include "braid/plan/block_work.h"
#include "braid/train/measuring.h"
#include "braid/train/timed_block.h"

namespace braid::train {
namespace {

constexpr nn::ModelPiece kBlock{1};

RunSpec one_block_of(RunSpec spec) {
  spec.model.layers = 1;
  if (spec.model.vocab == 0)
    spec.model.vocab = spec.model.vocab_multiple;  // needed by a sample's tokens, which no block reads
  spec.memory = {};  // no recompute: the passes are timed without it, and predictions add it
  return spec;
}

// Makes all parameters zero. Drawing values would take longer than all rounds, and large values lead to infinities,
// which are slow.
layout::ModelParams zero_params(const RunSpec& spec) {
  layout::BlockSpec block = nn::params_of(kBlock, layout::model_params(spec.model, 0, 1));
  for (layout::ParamSpec& param : block.params) param.init = {model::Init::Kind::Zeros};
  return {block};
}

}  // namespace

BlockInTraining::BlockInTraining(const RunSpec& spec, Communicator& self)
    : spec_(one_block_of(spec)),
      params_(zero_params(spec_)),
      sample_(spec_, params_, self),
      piece_(sample_.piece(kBlock)) {}

double BlockInTraining::round() {
  const c10::AutoGradMode with_grad(true);
  const PassTimes passes = piece_.run();
  seconds_.push_back(passes.forward + passes.input_grad + passes.weight_grad);
  return seconds_.back();
}

double BlockInTraining::seconds() const { return median(seconds_); }

double BlockInTraining::streamed_bytes() const {
  plan::RunLayout layout;
  layout.tokens = static_cast<double>(spec_.train.microbatch) * spec_.model.context;
  plan::set_account(plan::account_of(spec_), spec_.mesh, layout);
  double bytes = 0;
  for (size_t part = 0; part < layout.account->parts_of_layer(); ++part) {
    const plan::PartWork work = plan::part_work(spec_, layout, part, plan::FormulaSet::Braid);
    bytes += work.forward.streamed_bytes + work.input_grad.streamed_bytes;
  }
  return bytes;
}

namespace {

constexpr int kFewestRounds = 2, kMostRounds = 200;
constexpr double kBlockBudget = 0.3;  // seconds for all rounds of a block
constexpr double kTooLong = 0.2;      // seconds of one round, above which no wider block is tried

// A block in place of a model's. A head is 32 or 64 wide. No product of one of these blocks has as many operations as a
// product of another.
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
  return comm::agree(ranks, "mean of a measurement", value, ReduceOp::Sum) / ranks.size();
}

// A block after its first round, with the seconds of that round.
template <class Block>
struct WarmedUp {
  std::unique_ptr<Block> block;
  double seconds = 0;
};

// Makes a block and runs its first round. Collective, like everything that `make` calls.
template <class Block>
WarmedUp<Block> warmed_up(const std::function<std::unique_ptr<Block>()>& make, Communicator& ranks) {
  WarmedUp<Block> warm;
  const auto begin = [&] {
    warm.block = make();
    warm.seconds = warm.block->round();
  };
  ckpt::all_or_none(begin, ranks);
  return warm;
}

// Returns the number of rounds, the same on every rank, from the time of the slowest rank's first round.
int num_rounds(double seconds, Communicator& ranks) {
  return std::clamp(static_cast<int>(kBlockBudget / comm::agree(ranks, "time of a round", seconds, ReduceOp::Max)),
                    kFewestRounds, kMostRounds);
}

// Returns the shortest time of `rounds` calls of `round`, which returns its seconds. A passing load of the machine does
// not lengthen the shortest time.
template <class Round>
double shortest_of(const Round& round, int rounds) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) shortest = std::min(shortest, round());
  return shortest;
}

// Returns one speed for all layers of the same size, measured over these layers together.
std::vector<ProductSpeed> product_speeds(const std::vector<TimedLinear>& layers, Communicator& ranks) {
  std::vector<std::pair<double, std::vector<double>>> sizes;  // operations, and the median seconds of each layer
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

// Returns true if a rank may hold a whole block beside its run. It may always hold its own shard. Each weight is stored
// twice, once for a step and once for kernels, in up to 32 bytes together (float64).
bool may_have_whole(const TimedBlock& share, int tensor_ranks) {
  constexpr double kMostBytes = 256 << 20, kBytesOfWeight = 32;
  double weights = 0;
  for (const TimedLinear& layer : share.layers()) weights += layer.weights();
  return tensor_ranks == 1 || tensor_ranks * weights * kBytesOfWeight <= kMostBytes;
}

// Times the kernels of a tensor rank's shard of a block, in turns with other blocks, so that operands are as cold as in
// training. On CPUs the other block is the whole block of all tensor ranks, unless it is too large:
//
//   as training runs it   no rank can run its shard by itself in this way
//   by kernels            if there are several tensor ranks
//
// The time of the whole block beyond its products gives the elementwise rate in bytes per second, which is taken to
// hold for the shard. If the whole block is too large, and on devices, the other block is the shard's kernels once
// more. Devices replay steps without the host (train.cuda_graph).
class BlockProbe {
 public:
  // `self` is a group of this rank alone. `self` and `ranks` outlive this.
  BlockProbe(const RunSpec& spec, at::Device device, Communicator& ranks, Communicator& self)
      : kernels_(spec, device, ranks) {
    const bool whole = device.is_cpu() && may_have_whole(kernels_, spec.mesh.tensor);
    const RunSpec beside = whole ? without_tensor_ranks(spec) : spec;
    if (!whole || spec.mesh.tensor > 1) beside_ = std::make_unique<TimedBlock>(beside, device, ranks);
    if (whole) in_training_ = std::make_unique<BlockInTraining>(beside, self);
  }

  double round() {
    return kernels_.round() + (beside_ ? beside_->round() : 0) + (in_training_ ? in_training_->round() : 0);
  }

  const TimedBlock& kernels() const { return kernels_; }
  CopySpeed elementwise() const {
    const TimedBlock& kernels = beside_ ? *beside_ : kernels_;
    const double most = kernels.elements().bytes_per_second(), size = kernels.elements().tensor_bytes();
    if (!in_training_) return {size, most};
    const BlockRemainder rest{in_training_->seconds(), kernels.product_seconds(), in_training_->streamed_bytes()};
    return {size, rest.bytes_per_second(most)};
  }

 private:
  TimedBlock kernels_;
  std::unique_ptr<TimedBlock> beside_;
  std::unique_ptr<BlockInTraining> in_training_;
};

// Returns a run without context ranks, whose sequences have the tokens that a context rank has.
RunSpec with_tokens_of_rank(RunSpec spec) {
  spec.model.context /= spec.mesh.context;
  spec.mesh.context = 1;
  return spec;
}

struct MeasuredBlock {
  BlockSpeed speed;
  double round_seconds = 0;
};

MeasuredBlock measured(const RunSpec& spec, at::Device device, Communicator& ranks) {
  const c10::AutoGradMode no_grad(false);
  const param::UncountedScope uncounted;
  const auto self = ranks.split(ranks.rank(), 0, "block");
  const auto warm =
      warmed_up<BlockProbe>([&] { return std::make_unique<BlockProbe>(spec, device, ranks, *self); }, ranks);
  BlockProbe& probe = *warm.block;
  const int rounds = num_rounds(warm.seconds, ranks);
  double round_seconds = 0;
  ckpt::all_or_none([&] { round_seconds = shortest_of([&] { return probe.round(); }, rounds); }, ranks);
  round_seconds = comm::agree(ranks, "time of a round", round_seconds, ReduceOp::Max);
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
  return measured(with_tokens_of_rank(spec), device, ranks).speed;
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

double measured_skew(const RunSpec& given, at::Device device, Communicator& ranks) {
  const RunSpec spec = with_tokens_of_rank(given);
  const c10::AutoGradMode no_grad(false);
  const param::UncountedScope uncounted;
  const auto warm = warmed_up<TimedBlock>([&] { return std::make_unique<TimedBlock>(spec, device, ranks); }, ranks);
  TimedBlock& block = *warm.block;
  BlockSeconds of_block;
  const int rounds = num_rounds(2 * warm.seconds, ranks);
  for (int i = 0; i < rounds; ++i) {  // in turns, since the speed of hosts changes
    const double apart = block.round();
    ranks.barrier().wait_host();  // else a rank that was faster apart would wait in step
    const double in_step = block.round_in_step(), sums = block.sums();
    of_block.apart += apart, of_block.in_step += in_step, of_block.sums += sums;
  }
  for (double* seconds : {&of_block.apart, &of_block.in_step, &of_block.sums}) {
    *seconds = mean_of_ranks(*seconds, ranks);
  }
  return of_block.skew();
}

}  // namespace braid::train
