#include "tests/train/saved_run.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/spec/describe.h"
#include "tests/train/layout_run.h"

namespace braid {

Tensors tensors_of_checkpoint(const std::string& directory) {
  std::vector<ckpt::PlacedTensor> tensors;
  for (const auto& [name, tensor] : ckpt::read_manifest(directory).tensors) {
    tensors.push_back({name, mesh::replicated(tensor.shape), at::empty(tensor.shape, ckpt::scalar_type(tensor.type))});
  }
  ckpt::load_checkpoint(directory, tensors);
  Tensors all;
  for (const ckpt::PlacedTensor& tensor : tensors) all[tensor.name] = tensor.local;
  return all;
}

RunSpec saved_spec(OptimizerKind kind, StateType states, const SavedLayout& layout) {
  RunSpec spec = tiny_spec(8, 8);
  spec.model.layers = 2;
  spec.mesh = layout.mesh;
  spec.sync.zero = layout.zero;
  spec.pipeline.schedule = layout.schedule;
  spec.optimizer.kind = kind;
  spec.optimizer.state_dtype = states;
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  spec.train.steps = 3;
  spec.optimizer.decay_steps = 3;
  spec.data.paths = {"text"};  // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

Tensors SavedRun::trained(const RunSpec& spec, const std::string& from, const std::string& middle) {
  const std::string last = path(cat("last-", num_runs_++));
  on_every_rank(spec, [&](train::Trainer& trainer) {
    if (!from.empty()) trainer.load(path(from));
    while (trainer.num_steps() < 2) trainer.step();
    if (!middle.empty()) trainer.save(path(middle), spec::to_toml(spec));
    while (trainer.num_steps() < spec.train.steps) trainer.step();
    trainer.save(last, spec::to_toml(spec));
  });
  return tensors_of_checkpoint(last);
}

}  // namespace braid
