// Parameters lie in the flat buffers in the order of layers, which backward completes from the last to the first.
#include "braid/train/early_update.h"

#include "braid/optim/grad_norm.h"

namespace braid::train {

EarlyUpdate::EarlyUpdate(RankModel& model, const sync::GradientSync& gradients, optim::Optimizer& optimizer,
                         double clip_norm)
    : store_(model.params()),
      gradients_(gradients),
      optimizer_(optimizer),
      is_summed_(model.groups().replicas().replicas.size() > 1 || store_.shards_gradients()),
      clip_norm_(clip_norm),
      expects_clipping_(clip_norm > 0) {
  const optim::ParamPlaces places = optim::places_of(model.order());
  for (const param::Parameter& param : store_.params()) {
    layer_of_param_.push_back(model.layers().of_param[places.at(param.name)]);
  }
}

void EarlyUpdate::begin(const optim::OptimizerStep& unclipped) {
  ready_.assign(store_.params().size(), 0);
  first_updated_ = ready_.size();
  begun_ = !expects_clipping_ && optimizer_.begin(unclipped);
}

void EarlyUpdate::ready(const param::Parameter& param) {
  if (!begun_) return;
  // The gradients of several uses are added up after the passes.
  if (param.uses == 1) ready_[static_cast<size_t>(param.index)] = 1;
  const int now = layer_of_param_[static_cast<size_t>(param.index)];
  const int64_t final_from = is_summed_ ? gradients_.final_from() : 0;
  const auto is_done = [&](size_t index) {
    return ready_[index] == 1 && layer_of_param_[index] > now && store_.params()[index].offset >= final_from;
  };
  const size_t before = first_updated_;
  while (first_updated_ > 0 && is_done(first_updated_ - 1)) --first_updated_;
  if (first_updated_ < before) optimizer_.advance(store_.params()[first_updated_].offset);
}

void EarlyUpdate::end(double grad_norm) { expects_clipping_ = optim::clip_scale(grad_norm, clip_norm_) < 1; }

}  // namespace braid::train
