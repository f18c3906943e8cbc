// Three collectives that are under way at the same time.
#include "braid/train/step_exchange.h"

#include <ATen/ops/zeros.h>

#include <numeric>

#include "braid/optim/grad_norm.h"

namespace braid {
namespace {

// Sums of doubles that travel behind the losses. A hash goes in halves, of which sums over any number of ranks are
// exact.
enum Sum { kSquares, kHashLow, kHashHigh, kNumSums };
constexpr int kHalf = 32;

double total(const double* losses, int64_t count) { return std::accumulate(losses, losses + count, 0.0); }

GradNormExchange started_norm(StageModel& model) {
  const auto counts = [&](const Parameter& param) { return model.counts(param); };
  return {model.params(), model.order(), counts, model.norm_groups()};
}

// The losses, and behind them the sums that are none.
at::Tensor with_sums(const OwnNumbers& own, double own_norm) {
  const int64_t count = own.losses.numel();
  const auto all = at::zeros({count + kNumSums}, at::kDouble);
  all.narrow(0, 0, count).copy_(own.losses);
  double* const sums = all.mutable_data_ptr<double>() + count;
  sums[kSquares] = own_norm * own_norm;
  sums[kHashLow] = static_cast<double>(own.sample_hash & ((uint64_t{1} << kHalf) - 1));
  sums[kHashHigh] = static_cast<double>(own.sample_hash >> kHalf);
  return all;
}

}  // namespace

double total_loss(const at::Tensor& losses, Communicator& world) {
  world.all_reduce(losses, ReduceOp::Sum).wait_host();
  return total(losses.const_data_ptr<double>(), losses.numel());
}

StepNumbers exchanged(StageModel& model, const OwnNumbers& own) {
  Communicator& told = *model.groups().step_report;
  GradNormExchange norm = started_norm(model);
  RowsInFlight rows = start_gathering(own.row, told);
  const at::Tensor all = with_sums(own, norm.own());
  Work summed = told.all_reduce(all, ReduceOp::Sum);

  StepNumbers numbers;
  summed.wait_host();
  const int64_t count = own.losses.numel();
  const double* const losses = all.const_data_ptr<double>();
  const double* const sums = losses + count;
  numbers.loss = total(losses, count) / static_cast<double>(count);
  numbers.squares = sums[kSquares];
  numbers.sample_hash = static_cast<uint64_t>(sums[kHashLow]) + (static_cast<uint64_t>(sums[kHashHigh]) << kHalf);
  numbers.grad_norm = norm.finish();
  numbers.rows = finish_gathering(rows);
  return numbers;
}

}  // namespace braid
