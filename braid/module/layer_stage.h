// The layers of one stage, run one after another.
#pragma once

#include <string>
#include <vector>

#include "braid/module/gathered_layers.h"
#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"
#include "braid/module/stage_plan.h"

namespace braid::modules {

class LayerStage {
 public:
  // `layers` outlive this.
  LayerStage(const LayerList& layers, StagePlan plan, int number, RankKind ranks);

  // Runs the layers. `inputs` are the flow followed by the tensors carried in; the result is the flow followed by the
  // tensors carried out. If a layer throws an error of base/errors.h, the error passes; a ConfigError gets the layer
  // and the stage before its keys. Any other exception becomes a RunError with the layer's name, the stage and its
  // message. While shapes are traced on thread ranks, a layer that draws from the process-wide generator is refused
  // with ConfigError.
  Tensors forward(const Tensors& inputs, ForwardPurpose purpose) const;
  // Runs the layers by `gathered` from now on, where the stage's first one is `first_gathered`. `gathered` outlives
  // this.
  void run_by(GatheredLayers& gathered, int first_gathered);
  const ListenerList& listeners() const { return listeners_; }
  Tensors parameters() const;
  Tensors buffers() const;
  const StagePlan& plan() const { return plan_; }

 private:
  Tensors run(int index, const Tensors& inputs) const;
  Tensors call(const Layer& layer, const Tensors& inputs) const;
  Tensors watched(int index, const Tensors& inputs) const;

  const LayerList& layers_;
  StagePlan plan_;
  int number_;
  RankKind ranks_;
  ListenerList listeners_;
  GatheredLayers* gathered_ = nullptr;  // null: parameters are whole
  int first_gathered_ = 0;
};

}  // namespace braid::modules
