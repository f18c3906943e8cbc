// One rank's part of the model: the blocks of its stages, their parameters, and the sink of their gradients.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/nn/model.h"
#include "braid/nn/segments.h"
#include "braid/optim/grad_norm.h"
#include "braid/param/unit_sink.h"
#include "braid/spec/run_spec.h"
#include "braid/train/context_ranks.h"
#include "braid/train/groups.h"

namespace braid::train {

// The blocks of the whole model.
struct ModelLayers {
  std::vector<std::string> names;  // names of BlockSpecs, in model order
  std::vector<int> of_param;       // index in `names`, by place in the ParamOrder; a tied parameter has its first block
};

class RankModel {
 public:
  // `spec.model.vocab` is resolved. `groups` must outlive this.
  RankModel(const RunSpec& spec, const Groups& groups) : RankModel(spec, groups, nn::model_maker(spec.model)) {}
  // The same for a model of `maker`, which outlives this.
  RankModel(const RunSpec& spec, const Groups& groups, const nn::ModelMaker& maker);

  // Returns the blocks of `stage`, in segments by memory.recompute. REQUIRES: groups().layout gives this rank `stage`.
  const nn::Segments& segments(int stage) const { return *stages_.at(stage).segments; }

  param::ParamStore& params() { return *store_; }
  param::SwapSpace* activations_on_disk() const { return activations_.get(); }  // null: in memory
  // Returns sentences for the user about slower ways to use the disk (disk/disk.h); empty without a disk.
  std::vector<std::string> disk_notes() const;
  // Returns the bytes that the rank has read from its disks and written to them, of operations that have ended.
  int64_t bytes_moved_on_disk() const;
  param::GradSink& sink() { return *sink_; }
  param::UnitSink* unit_sink() { return unit_sink_; }  // the sink of sharded gradients; null if they are whole
  // Returns the stage of each block of the store.
  const std::vector<int>& stage_of_block() const { return stage_of_block_; }
  // Returns for each block of the store 1 if backward runs it, else 0: nothing is trained in it or before it.
  std::vector<char> runs_backward() const;
  // Sets hooks that are called around every block that runs, with its number among the blocks of the store.
  void set_hooks(const nn::BlockHooks& hooks);
  // Call the hooks before and after all blocks of `stage` at once. In between, the stage's parameters stay gathered.
  void hold_stage(int stage) const;
  void let_stage_go(int stage) const;
  param::WeightGradQueue& weight_grads(int stage) { return *stages_.at(stage).weight_grads; }
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stage + 1 == groups_.layout.num_stages(); }
  bool has_last() const { return stages_.contains(groups_.layout.num_stages() - 1); }
  const Groups& groups() const { return groups_; }
  // Returns true if this rank counts `param` in norms: no lower rank of groups().model() holds the same elements.
  bool counts(const param::Parameter& param) const;
  // Returns the names of the whole model's parameters, the same on every rank.
  const optim::ParamOrder& order() const { return order_; }
  // Returns the layers of the whole model, the same on every rank.
  const ModelLayers& layers() const { return layers_; }
  // Returns the auxiliary losses and counts of the whole model's blocks, the same on every rank.
  const layout::AuxiliarySpec& auxiliaries() const { return auxiliaries_; }

 private:
  struct Stage {
    std::unique_ptr<param::WeightGradQueue> weight_grads;
    nn::Segments::Blocks blocks;
    std::unique_ptr<nn::Segments> segments;
  };
  void make_sink();
  void build(const RunSpec& spec, int stage);
  int first_block(int stage) const;
  int last_in_backward(int stage) const;  // as nn::Segments has it

  const Groups& groups_;
  const nn::ModelMaker& maker_;
  optim::ParamOrder order_;
  ModelLayers layers_;
  layout::AuxiliarySpec auxiliaries_;
  std::unique_ptr<param::ParamStore> store_;
  std::shared_ptr<param::SwapSpace> activations_;  // of activations on disk; else null
  std::unique_ptr<param::GradSink> sink_;
  param::UnitSink* unit_sink_ = nullptr;
  ContextRanks context_;
  std::vector<int> stage_of_block_;
  std::vector<char> is_trained_;  // by block: 1 if one of its parameters is trained
  nn::BlockHooks hooks_;
  std::map<int, Stage> stages_;
};

// Returns the sharding of sync.zero and of tensors on disk on these groups.
param::Sharding sharding_of(const RunSpec& spec, const Groups& groups);

// Returns the names of `params` in model order, a tied parameter once.
optim::ParamOrder param_order(const layout::ModelParams& params);
ModelLayers model_layers(const layout::ModelParams& params);

at::ScalarType scalar_type(DType dtype);
// Returns the parts of a rank's sums: none in fast mode and on devices.
layout::TensorParts tensor_parts(const RunSpec& spec);
// Returns the sizes of a microbatch's hidden state on one rank, b x t x c.
std::vector<int64_t> hidden_sizes(const RunSpec& spec);

}  // namespace braid::train
