// Every part of a tensor is compared with its place in the whole.
#include "braid/verify/comparison.h"

#include <vector>

namespace braid::verify {

void Comparison::begin(const param::ParamStore& params) {
  compare_params(params, train::Held::Weights, Phase::Start, want_.start);
}

void Comparison::end_step(const param::ParamStore& params, const train::StepReport& report) {
  const RecordedStep& want = want_.steps.at(static_cast<size_t>(steps_));
  const int64_t step = ++steps_;
  differences_.add({step, Phase::Data, Subjects::kSamples, options_.rank},
                   report.sample_hash == want.sample_hash ? 0 : 1, 0);
  differences_.add({step, Phase::Forward, subjects_.loss(), options_.rank}, report.loss, want.loss);
  if (options_.gradients == ParamGradients::Final) {
    const double norm = report.grad_norm * report.loss_scale;
    differences_.add({step, Phase::Norm, subjects_.norm(), options_.rank}, norm, want.grad_norm);
    compare_params(params, train::Held::Gradients, Phase::Gradients, want.gradients);
  }
  compare_params(params, train::Held::Masters, Phase::Update, want.masters);
  compare_params(params, train::Held::Weights, Phase::Weights, want.weights);
}

void Comparison::compare_params(const param::ParamStore& params, train::Held what, Phase phase,
                                const RecordedTensors& want) {
  const int64_t step = phase == Phase::Start ? 1 : steps_;
  train::visit_held(params, what,
                    [&](const param::Parameter& param, const at::Tensor& part, const mesh::Placement& placement) {
                      const Place at{step, phase, subjects_.of_param(param.name), options_.rank};
                      compare(at, {part, placement}, want.at(param.name));
                    });
}

void Comparison::compare(const Place& at, const PlacedValue& got, const RecordedTensor& want) {
  std::vector<at::Tensor> slacks;
  const auto keep_slack = [&](const at::Tensor&, const at::Tensor& slack) { slacks.push_back(slack); };
  if (want.slack.defined()) train::visit_boxes(got.part, got.placement, want.slack, keep_slack);
  size_t box = 0;
  train::visit_boxes(got.part, got.placement, want.whole, [&](const at::Tensor& of_got, const at::Tensor& of_want) {
    differences_.add(at, of_got, {of_want, slacks.empty() ? at::Tensor() : slacks[box++], want.scale});
  });
}

// Returns the recorded value; null if the serial run did not make it, as where its kernels are fused.
const RecordedTensor* Comparison::recorded(const nn::MadeValue& place, uint64_t microbatch, Phase phase) const {
  nn::MadeValue same = place;
  if (place.kind == nn::ValueKind::Input && place.value != 0) same.kind = nn::ValueKind::Output;
  const auto found = want_.values.find({microbatch, subjects_.of_value(same), phase});
  return found == want_.values.end() ? nullptr : &found->second;
}

const RecordedTensor* Comparison::input(uint64_t microbatch, int subject) const {
  const auto found = want_.values.find({microbatch, subject, Phase::Data});
  return found == want_.values.end() ? nullptr : &found->second;
}

at::Tensor Comparison::rows_of(uint64_t microbatch) const {
  const RecordedTensor* const rows = input(microbatch, Subjects::kRows);
  return rows ? rows->whole : at::Tensor();
}

void Comparison::compare_inputs(int64_t step, const nn::Microbatch& microbatch) {
  const uint64_t key = microbatch.dropout_key;
  const auto compare_input = [&](int subject, const at::Tensor& got) {
    const RecordedTensor* const want = input(key, subject);
    const Place at{step, Phase::Data, subject, options_.rank};
    if (!want || !got.defined()) {
      differences_.add(at, got.defined() == (want != nullptr) ? 0 : 1, 0);
    } else {
      differences_.add(at, got, {places_.input_part(subject, want->whole, rows_of(key)), {}, want->scale});
    }
  };
  if (microbatch.tokens_bt.defined()) compare_input(Subjects::kTokens, microbatch.tokens_bt);
  if (microbatch.targets_bt.defined()) compare_input(Subjects::kRows, microbatch.rows_bj);
  if (microbatch.targets_bt.defined()) compare_input(Subjects::kTargets, microbatch.targets_bt);
  compare_input(Subjects::kDocuments, microbatch.documents_bt);
}

void Comparison::made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) {
  const uint64_t key = microbatch.dropout_key;
  const int64_t step = steps_ + 1;
  const auto known = want_.step_of.find(key);
  const bool is_of_step = known != want_.step_of.end() && known->second == step;
  differences_.add({step, Phase::Data, Subjects::kDropoutKey, options_.rank}, is_of_step ? 0 : 1, 0);
  if (!is_of_step) return;
  if (begun_.insert({key, place.block}).second) compare_inputs(step, microbatch);
  const int subject = subjects_.of_value(place);
  const Phase phase = num_passes_[{key, subject}]++ == 0 ? Phase::Forward : Phase::Recompute;
  const PlacedValue got = places_.placed(place, value, rows_of(key));
  const auto* const value_want = places_.is_part_of_sum(got) ? nullptr : recorded(place, key, Phase::Forward);
  if (value_want) compare({step, phase, subject, options_.rank}, got, *value_want);
  if (!value.requires_grad() || has_copies(got.placement)) return;
  const RecordedTensor* const want = recorded(place, key, Phase::Backward);
  if (!want) return;
  value.register_hook([=, this, placement = got.placement](const at::Tensor& gradient) {
    const at::Tensor part = gradient.div(options_.seed).reshape(placement.local_shape);
    compare({step, Phase::Backward, subject, options_.rank}, {part, placement}, *want);
  });
}

}  // namespace braid::verify
