// Three collectives that nobody waits for until somebody asks.
#include "braid/train/step_exchange.h"

#include <ATen/ops/zeros.h>

#include <numeric>

namespace braid {
namespace {

double mean(const double* losses, int64_t count) {
  return std::accumulate(losses, losses + count, 0.0) / static_cast<double>(count);
}

GradNormExchange started_norm(StageModel& model) {
  const auto counts = [&](const Parameter& param) { return model.counts(param); };
  return {model.params(), model.order(), counts, model.norm_groups()};
}

}  // namespace

double mean_loss(const at::Tensor& losses, Communicator& world) {
  world.all_reduce(losses, ReduceOp::Sum).wait_host();
  return mean(losses.const_data_ptr<double>(), losses.numel());
}

StepExchange::StepExchange(StageModel& model, const Own& own)
    : norm_(started_norm(model)),
      losses_(at::zeros({own.losses.numel() + 2}, at::kDouble)),
      rows_(start_gathering(own.row, *model.groups().step_report)),
      num_model_ranks_(model.groups().model->size()) {
  losses_.narrow(0, 0, own.losses.numel()).copy_(own.losses);
  double* const more = losses_.mutable_data_ptr<double>() + own.losses.numel();
  more[0] = own.wish == Wish::Stop ? 1 : 0;
  more[1] = norm_.own() * norm_.own();
  losses_work_ = model.groups().step_report->all_reduce(losses_, ReduceOp::Sum);
}

StepExchange::Numbers StepExchange::finish() {
  Numbers numbers;
  losses_work_.wait_host();
  const double* losses = losses_.const_data_ptr<double>();
  const int64_t count = losses_.numel() - 2;
  numbers.loss = mean(losses, count);
  numbers.wish = losses[count] > 0 ? Wish::Stop : Wish::GoOn;
  numbers.squares = losses[count + 1];
  numbers.grad_norm = norm_.finish();
  for (int rank = 0; rank < num_model_ranks_; ++rank) numbers.own_norms.push_back(norm_.part(rank));
  numbers.rows = finish_gathering(rows_);
  return numbers;
}

}  // namespace braid
