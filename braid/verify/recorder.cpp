// Copies each tensor as soon as it exists.
#include "braid/verify/recorder.h"

#include <utility>

#include "braid/train/held_tensors.h"

namespace braid::verify {
namespace {

RecordedTensor recorded(at::Tensor whole) {
  const double scale = scale_of(whole);
  return {std::move(whole), scale};
}

RecordedTensors recorded_params(const param::ParamStore& store, train::Held what) {
  std::map<std::string, at::Tensor> whole;
  train::visit_held(store, what, [&](const param::Parameter& param, const at::Tensor& part, const auto& placement) {
    train::copy_part(part, placement, whole[param.name]);
  });
  RecordedTensors all;
  for (auto& [name, tensor] : whole) all[name] = recorded(std::move(tensor));
  return all;
}

}  // namespace

void Recorder::begin(const param::ParamStore& params) {
  recording_.start = recorded_params(params, train::Held::Weights);
  for (const param::Parameter& param : params.params()) recording_.decays[param.name] = param.decay;
}

void Recorder::end_step(const param::ParamStore& params, const train::StepReport& report) {
  recording_.steps.push_back({.loss = report.loss,
                              .grad_norm = report.grad_norm * report.loss_scale,
                              .learning_rate = report.learning_rate,
                              .loss_scale = report.loss_scale,
                              .sample_hash = report.sample_hash,
                              .gradients = recorded_params(params, train::Held::Gradients),
                              .masters = recorded_params(params, train::Held::Masters),
                              .weights = recorded_params(params, train::Held::Weights)});
}

void Recorder::record(const ValuePlace& at, const PlacedValue& value) {
  at::Tensor whole;
  train::copy_part(value.part, value.placement, whole);
  recording_.values[at] = recorded(std::move(whole));
}

void Recorder::record_inputs(const nn::Microbatch& microbatch) {
  const std::pair<int, const at::Tensor&> inputs[] = {{Subjects::kTokens, microbatch.tokens_bt},
                                                      {Subjects::kTargets, microbatch.targets_bt},
                                                      {Subjects::kRows, microbatch.rows_bj},
                                                      {Subjects::kDocuments, microbatch.documents_bt}};
  for (const auto& [subject, input] : inputs) {
    if (input.defined()) recording_.values[{microbatch.dropout_key, subject, Phase::Data}] = recorded(input);
  }
}

void Recorder::made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) {
  const uint64_t key = microbatch.dropout_key;
  const auto step = static_cast<int64_t>(recording_.steps.size()) + 1;
  if (recording_.step_of.try_emplace(key, step).second) record_inputs(microbatch);
  const int subject = subjects_.of_value(place);
  const PlacedValue placed = places_.placed(place, value, microbatch.rows_bj);
  record({key, subject, Phase::Forward}, placed);
  if (!value.requires_grad() || place.gradient != nn::ValueGradient::Whole) return;
  value.register_hook([this, key, subject, placement = placed.placement](const at::Tensor& gradient) {
    record({key, subject, Phase::Backward}, {gradient.reshape(placement.local_shape), placement});
  });
}

}  // namespace braid::verify
