// The model of a checkpoint on CPU ranks, for generation and evaluation. Pipeline ranks hold one stage each; tensor
// ranks hold their shard of every layer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/spec/run_spec.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/rank_model.h"

namespace braid::train {

// A checkpoint to load, before anything of the model's size is allocated.
struct ModelToLoad {
  std::string directory;
  RunSpec spec;           // its mesh has pipe and tensor ranks only
  std::string tokenizer;  // the checkpoint's own: "bytes" or its folder; empty where it was saved without one
};

// Options for computing with a checkpoint's weights.
struct LoadOptions {
  std::optional<DType> dtype = {};  // none: the run's
  int pipe = 1, tensor = 1;         // ranks along these axes; others have one
};

// Verifies the checkpoint in `directory`, written on any mesh, and reads its configuration. Throws IoError and
// ConfigError for a checkpoint that cannot be read, and ConfigError (keys "mesh.pipe" and "mesh.tensor") for ranks that
// its model cannot be split over.
ModelToLoad model_to_load(const std::string& directory, const LoadOptions& options = {});

// `name` as data.tokenizer names one; empty: the one saved with the weights, wherever the run's own is today. A path in
// the checkpoint's configuration is never opened, since anybody may have written it. Throws ConfigError (key
// "data.tokenizer") for a tokenizer that cannot be read or that has more tokens than the model, and where `name` is
// empty and the checkpoint has none.
std::unique_ptr<tokenize::Tokenizer> tokenizer_of(const ModelToLoad& load, const std::string& name);
// Returns `name`, or the name of the tokenizer saved with the weights. Throws as tokenizer_of if there is neither.
std::string tokenizer_place(const ModelToLoad& load, const std::string& name);

// As the run that wrote the checkpoint started its ranks.
RanksAs saved_ranks(const std::string& directory);

class LoadedModel {
 public:
  // Collective over `world`, which has a rank for each of the mesh. Throws RunError for weights that are not finite or
  // too large to compute with.
  LoadedModel(const ModelToLoad& load, Communicator& world);

  const ModelSpec& spec() const { return spec_.model; }
  // Returns the last block's result, the same on all ranks, without gradients and dropout: the mean loss if the
  // microbatch has targets, else logits with the padding of the vocabulary (s x 1 x v with a cache, else b x t x v).
  // Collective: all ranks pass the same microbatch, each with a cache of its own. Throws CommError.
  at::Tensor forward(nn::Microbatch microbatch) const;

 private:
  at::Tensor received(const nn::Microbatch& microbatch) const;
  at::Tensor with_whole_vocab(const at::Tensor& y, const nn::Microbatch& microbatch) const;
  at::Tensor result_buffer(const nn::Microbatch& microbatch) const;

  RunSpec spec_;
  RankGroups groups_;
  RankModel model_;
};

}  // namespace braid::train
