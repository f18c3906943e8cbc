// Three collectives that nobody waits for until somebody asks.
#include "braid/train/step_exchange.h"

#include <ATen/ops/zeros.h>

#include <numeric>

namespace braid {
namespace {

// Sums of doubles that travel behind the losses. A hash goes in halves, of which sums over any number of ranks are
// exact.
enum Sum { kWishes, kSquares, kHashLow, kHashHigh, kNumSums };
constexpr int kHalf = 32;

double total(const double* losses, int64_t count) { return std::accumulate(losses, losses + count, 0.0); }

// Sums of weights tell the strongest wish of fewer ranks than this.
constexpr double kManyRanks = 1 << 20;

double weight_of(Wish wish) { return wish == Wish::Stop ? kManyRanks : wish == Wish::Save ? 1 : 0; }

Wish strongest_of(double weights) { return weights >= kManyRanks ? Wish::Stop : weights > 0 ? Wish::Save : Wish::GoOn; }

GradNormExchange started_norm(StageModel& model) {
  const auto counts = [&](const Parameter& param) { return model.counts(param); };
  return {model.params(), model.order(), counts, model.norm_groups()};
}

}  // namespace

double total_loss(const at::Tensor& losses, Communicator& world) {
  world.all_reduce(losses, ReduceOp::Sum).wait_host();
  return total(losses.const_data_ptr<double>(), losses.numel());
}

StepExchange::StepExchange(StageModel& model, const Own& own)
    : norm_(started_norm(model)),
      losses_(at::zeros({own.losses.numel() + kNumSums}, at::kDouble)),
      rows_(start_gathering(own.row, *model.groups().step_report)),
      num_model_ranks_(model.groups().model->size()) {
  losses_.narrow(0, 0, own.losses.numel()).copy_(own.losses);
  double* const more = losses_.mutable_data_ptr<double>() + own.losses.numel();
  more[kWishes] = weight_of(own.wish);
  more[kSquares] = norm_.own() * norm_.own();
  more[kHashLow] = static_cast<double>(own.sample_hash & ((uint64_t{1} << kHalf) - 1));
  more[kHashHigh] = static_cast<double>(own.sample_hash >> kHalf);
  losses_work_ = model.groups().step_report->all_reduce(losses_, ReduceOp::Sum);
}

StepExchange::Numbers StepExchange::finish() {
  Numbers numbers;
  losses_work_.wait_host();
  const double* losses = losses_.const_data_ptr<double>();
  const int64_t count = losses_.numel() - kNumSums;
  const double* const more = losses + count;
  numbers.loss = total(losses, count) / static_cast<double>(count);
  numbers.wish = strongest_of(more[kWishes]);
  numbers.squares = more[kSquares];
  numbers.sample_hash = static_cast<uint64_t>(more[kHashLow]) + (static_cast<uint64_t>(more[kHashHigh]) << kHalf);
  numbers.grad_norm = norm_.finish();
  for (int rank = 0; rank < num_model_ranks_; ++rank) numbers.own_norms.push_back(norm_.part(rank));
  numbers.rows = finish_gathering(rows_);
  return numbers;
}

}  // namespace braid
