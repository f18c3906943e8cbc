// StepAuxiliaries is one flat tensor, so that reading a step back from a device takes one copy however many routers
// there are.
#include "braid/train/step_report.h"

#include <ATen/ops/zeros.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::train {
namespace {

const at::Tensor& listed(const std::map<std::string, at::Tensor>& views, const std::string& name) {
  const auto found = views.find(name);
  check(found != views.end(), cat("a block hands in ", name, ", which no BlockSpec lists"));
  return found->second;
}

std::map<std::string, std::vector<double>> by_name(const std::map<std::string, at::Tensor>& views, const double* flat) {
  std::map<std::string, std::vector<double>> numbers;
  for (const auto& [name, view] : views) {
    const double* const first = flat + view.storage_offset();
    numbers[name].assign(first, first + view.numel());
  }
  return numbers;
}

}  // namespace

void StepAuxiliaries::begin_step(int num_microbatches, const at::TensorOptions& like) {
  int64_t size = static_cast<int64_t>(all_.losses.size()) * num_microbatches, begin = 0;
  for (const layout::AuxiliarySpec::Count& count : all_.counts) size += count.size;
  flat_ = at::zeros({size}, like);
  const auto next = [&](int64_t count) {
    begin += count;
    return flat_.narrow(0, begin - count, count);
  };
  for (const std::string& name : all_.losses) losses_[name] = next(num_microbatches);
  for (const layout::AuxiliarySpec::Count& count : all_.counts) counts_[count.name] = next(count.size);
  const bool unique = losses_.size() == all_.losses.size() && counts_.size() == all_.counts.size();
  check(unique, "two blocks that hand something in call it by different names");
}

void StepAuxiliaries::add(int micro, const nn::Auxiliaries& handed_in) {
  for (const nn::AuxiliaryLoss& loss : handed_in.losses) listed(losses_, loss.name).select(0, micro).copy_(loss.value);
  for (const nn::AuxiliaryCount& count : handed_in.counts) listed(counts_, count.name).add_(count.numbers);
}

AuxiliaryNumbers StepAuxiliaries::numbers() const {
  if (all_.empty()) return {};
  const at::Tensor host = flat_.cpu();
  const double* const flat = host.const_data_ptr<double>();
  return {by_name(losses_, flat), by_name(counts_, flat)};
}

}  // namespace braid::train
