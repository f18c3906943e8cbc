// Autograd graphs end at stage borders: tensors that travel between stages have none.
#include "braid/train/block_executor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"
#include "braid/train/compute_device.h"

namespace braid::train {

BlockExecutor::BlockExecutor(const RunSpec& spec, RankModel& model, const BatchSource& batches, ExecutorOptions options)
    : model_(model),
      batches_(batches),
      plan_(std::move(options.versions)),
      mode_(options.mode),
      sequences_(options.sequences),
      activation_shape_(hidden_sizes(spec)),
      vocab_(spec.model.vocab),
      auxiliaries_(model.auxiliaries()) {
  if (mode_ == ExecutorMode::Training && plan_.asynchronous()) {
    versions_ = std::make_unique<param::WeightVersions>(model.params());
  }
}

void BlockExecutor::record_with(device::MakeGraph make) {
  check(mode_ == ExecutorMode::Training && model_.groups().layout.num_stages() == 1, "a whole model is recorded");
  check(model_.auxiliaries().empty(), "a replay runs no blocks, so none that hand something in");
  recorded_ = std::make_unique<RecordedMicrobatches>(model_, std::move(make));
}

void BlockExecutor::begin_step(int64_t step, double loss_scale) {
  step_ = step;
  loss_scale_ = loss_scale;
  sample_hash_ = 0;
  if (versions_) versions_->restart();
  num_reduced_ = 0;
  in_flight_.clear();
  input_gradients_.clear();
  const int num_microbatches = batches_.num_microbatches();
  const auto like = model_.params().flat_master().options().requires_grad(false).dtype(at::kDouble);
  if (model_.has_last()) losses_m_ = at::zeros({num_microbatches}, like);
  auxiliaries_.begin_step(num_microbatches, like);
  if (recorded_) recorded_->begin_step(placed(read(0, 0)), num_microbatches);
}

std::vector<double> BlockExecutor::losses() const {
  if (!losses_m_.defined()) return {};
  const at::Tensor host = losses_m_.cpu();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

// Returns the place of `micro` among the microbatches of its update that pass this stage on this rank.
int BlockExecutor::local_micro(int stage, int micro) const {
  const Groups& groups = model_.groups();
  const int first = groups.layout.microbatches(groups.at[mesh::Axis::Pipe], stage).begin;
  return micro - std::max(first, plan_.update_begin(plan_.update_of(micro)));
}

// An update minimises the mean loss over its microbatches on all data ranks. Each data rank has equally many
// microbatches in each of its updates.
double BlockExecutor::loss_gradient(int micro) const {
  const int update = plan_.update_of(micro), own = plan_.update_end(update) - plan_.update_begin(update);
  const int64_t of_all = int64_t{own} * batches_.num_global_microbatches() / batches_.num_microbatches();
  return loss_scale_ / static_cast<double>(of_all);
}

void BlockExecutor::use_weights_of(int stage, int micro) {
  if (versions_) versions_->use(plan_.version(stage, micro));
}

nn::Microbatch BlockExecutor::read(int stage, int micro) const {
  nn::Microbatch microbatch = batches_.microbatch(step_, micro, {model_.is_first(stage), model_.is_last(stage)});
  microbatch.micro = local_micro(stage, micro);
  microbatch.training = mode_ == ExecutorMode::Training;
  microbatch.loss_gradient = loss_gradient(micro);
  return microbatch;
}

nn::Microbatch BlockExecutor::placed(nn::Microbatch read) const {
  return placed_on(model_.params().flat_master().device(), std::move(read), vocab_);
}

void BlockExecutor::forward(int stage, int micro) {
  const c10::AutoGradMode grad(mode_ == ExecutorMode::Training);
  if (mode_ == ExecutorMode::Evaluation && model_.is_last(stage)) return evaluate_last(stage, micro);
  nn::Microbatch host = read(stage, micro);
  if (mode_ == ExecutorMode::Training) sample_hash_ += batches_.hash(step_, micro, host);
  const nn::Microbatch microbatch = placed(batches_.own_tokens(std::move(host)));
  if (replays()) {
    losses_m_.select(0, micro).copy_(recorded_->replay(microbatch));
    return;
  }
  use_weights_of(stage, micro);
  InFlight& flight = in_flight_[{stage, micro}];
  flight.passage = nn::Passage(microbatch);
  flight.output = model_.segments(stage).forward(std::exchange(flight.input, {}), flight.passage).detach();
  if (model_.groups().speaks()) auxiliaries_.add(micro, flight.passage.take_auxiliaries());
  if (model_.is_last(stage)) losses_m_.select(0, micro).copy_(flight.output);
}

// Runs only the sequences that count. If none do, the first one runs without effect, since ranks that share parameters
// run their blocks together.
void BlockExecutor::evaluate_last(int stage, int micro) {
  const int64_t counted = batches_.num_before(sequences_, step_, micro), run = std::max<int64_t>(counted, 1);
  const auto first = [run](at::Tensor all) { return all.defined() ? all.narrow(0, 0, run) : all; };
  nn::Microbatch host = read(stage, micro);
  for (at::Tensor* part : {&host.tokens_bt, &host.targets_bt, &host.documents_bt, &host.rows_bj}) *part = first(*part);
  host.num_targets = batches_.targets_in_evaluation(sequences_, run);
  nn::Passage passage(placed(batches_.own_tokens(std::move(host))));
  const at::Tensor input = first(in_flight_[{stage, micro}].input);
  in_flight_.erase({stage, micro});
  const at::Tensor loss = model_.segments(stage).forward(input, passage);
  if (counted > 0) losses_m_.select(0, micro).copy_(loss.to(at::kDouble).mul(counted));
}

void BlockExecutor::full_backward(int stage, int micro) {
  if (!replays()) backward(stage, micro, nn::WeightPass::AtOnce);
}

void BlockExecutor::input_grad(int stage, int micro) {
  if (!replays()) backward(stage, micro, nn::WeightPass::Later);
}

void BlockExecutor::backward(int stage, int micro, nn::WeightPass weights) {
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  use_weights_of(stage, micro);
  InFlight flight = std::move(in_flight_.extract({stage, micro}).mapped());
  if (model_.is_last(stage)) flight.output_gradient = at::full_like(flight.output, loss_gradient(micro));
  at::Tensor gradient =
      model_.segments(stage).backward(std::move(flight.passage), std::move(flight.output_gradient), weights);
  const bool passes = stage > 0 && model_.groups().layout.backward(stage - 1) != StageBackward::Nothing;
  if (passes) input_gradients_[{stage, micro}] = std::move(gradient);
}

void BlockExecutor::recompute(int stage, int micro) {
  if (replays()) return;
  use_weights_of(stage, micro);
  model_.segments(stage).recompute(in_flight_.at({stage, micro}).passage);
}

void BlockExecutor::weight_grad(int stage, int micro) {
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  model_.weight_grads(stage).run(local_micro(stage, micro));
}

void BlockExecutor::update(int stage, int micro) {
  check(versions_ && on_update, "an update within a step needs versions of the weights, and somebody to make it");
  versions_->use(versions_->newest());
  versions_->push();
  on_update(plan_.update_of(micro));
  const bool more = micro + 1 < batches_.num_microbatches();
  versions_->drop_before(more ? plan_.version(stage, micro + 1) : versions_->newest());
}

void BlockExecutor::reduce_grad(int) {
  const Groups& groups = model_.groups();
  const auto has_gradients = [&](int stage) { return groups.layout.backward(stage) == StageBackward::Whole; };
  const auto reduced = std::ranges::count_if(groups.layout.stages_of(groups.at[mesh::Axis::Pipe]), has_gradients);
  if (++num_reduced_ == reduced && on_reduce) on_reduce();
}

pipe::StageExecutor::Tensors BlockExecutor::outputs(int stage, int micro) {
  at::Tensor output = std::exchange(in_flight_.at({stage, micro}).output, {});
  const bool no_backward =
      mode_ == ExecutorMode::Evaluation || model_.groups().layout.backward(stage) == StageBackward::Nothing;
  if (no_backward) in_flight_.erase({stage, micro});
  return {output.contiguous()};
}

pipe::StageExecutor::Tensors BlockExecutor::input_gradients(int stage, int micro) {
  return {std::move(input_gradients_.extract({stage, micro}).mapped()).contiguous()};
}

pipe::StageExecutor::Tensors BlockExecutor::input_buffers(int stage, int micro) {
  return {in_flight_[{stage, micro}].input = activation_buffer()};
}

pipe::StageExecutor::Tensors BlockExecutor::output_gradient_buffers(int stage, int micro) {
  return {in_flight_[{stage, micro}].output_gradient = activation_buffer()};
}

void BlockExecutor::give_inputs(int stage, int micro, Tensors tensors) {
  in_flight_[{stage, micro}].input = tensors.at(0);
}

void BlockExecutor::give_output_gradients(int stage, int micro, Tensors tensors) {
  in_flight_[{stage, micro}].output_gradient = tensors.at(0);
}

at::Tensor BlockExecutor::activation_buffer() const {
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  return at::empty(activation_shape_, model_.params().flat_data().options().requires_grad(false));
}

}  // namespace braid::train
