// The layers of one stage, run one after another.
#pragma once

#include <string>
#include <vector>

#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"
#include "braid/module/stage_plan.h"

namespace braid::modules {

class LayerStage {
 public:
  // `layers` outlive this.
  LayerStage(const LayerList& layers, StagePlan plan, int number, RankKind ranks);

  // The flow followed by what is carried in; gives the flow followed by what is carried out. The errors of
  // base/errors.h that a layer throws pass, a ConfigError with the layer and the stage before its keys; any other comes
  // out as RunError with the layer's name, the stage and its message. While shapes are traced, a layer that draws from
  // the process-wide generator is refused with ConfigError on thread ranks.
  Tensors forward(const Tensors& inputs, ForwardPurpose purpose) const;
  const ListenerList& listeners() const { return listeners_; }
  Tensors parameters() const;
  Tensors buffers() const;
  const StagePlan& plan() const { return plan_; }

 private:
  Tensors call(const Layer& layer, const Tensors& inputs) const;
  Tensors watched(const Layer& layer, const Tensors& inputs) const;

  const LayerList& layers_;
  StagePlan plan_;
  int number_;
  RankKind ranks_;
  ListenerList listeners_;
};

}  // namespace braid::modules
