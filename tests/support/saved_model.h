// A checkpoint of a model's fresh weights, and the same model for what a test computes itself.
#pragma once

#include <c10/core/GradMode.h>

#include <functional>
#include <string>

#include "braid/ckpt/checkpoint.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/spec/describe.h"
#include "braid/train/rank_model.h"

namespace braid {

// `use` has the rank's model, without gradients.
inline void with_model(const RunSpec& spec, const std::function<void(train::RankModel&, Communicator&)>& use) {
  run_ranks(1, [&](Communicator& world) {
    const c10::AutoGradMode no_grad(false);
    const train::Groups groups(mesh::DeviceMesh(spec.mesh), train::StageLayout::single(), world);
    train::RankModel model(spec, groups);
    use(model, world);
  });
}

inline void save_fresh_weights(const RunSpec& spec, const std::string& directory) {
  with_model(spec, [&](train::RankModel& model, Communicator& world) {
    std::vector<ckpt::PlacedTensor> tensors;
    for (const param::Parameter& param : model.params().params()) {
      tensors.push_back({param.name, param.placement, param.master});
    }
    ckpt::save_checkpoint(directory, {tensors, {1, spec::to_toml(spec), "bytes", 0}}, world);
  });
}

}  // namespace braid
