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

// A verified checkpoint whose weights are not loaded yet.
struct ModelToLoad {
  std::string directory;
  RunSpec spec;           // its mesh has pipe and tensor ranks only
  std::string tokenizer;  // the one saved with the checkpoint: "bytes" or its folder; empty if there is none
};

// Options for computing with a checkpoint's weights.
struct LoadOptions {
  std::optional<DType> dtype = {};  // type to compute with; nullopt: the run's
  int pipe = 1, tensor = 1;         // number of ranks along these axes; all other axes have one
};

// Verifies the checkpoint in `directory`, written on any mesh, and reads its configuration. Allocates nothing of the
// model's size. Throws IoError and ConfigError if the checkpoint cannot be read, and ConfigError (keys "mesh.pipe" and
// "mesh.tensor") if its model cannot be split over the ranks.
ModelToLoad model_to_load(const std::string& directory, const LoadOptions& options = {});

// Returns the tokenizer `name`, a value of data.tokenizer. An empty `name` means the tokenizer saved with the weights.
// Never opens the path in the checkpoint's configuration, since the checkpoint may come from an untrusted source.
// Throws ConfigError (key "data.tokenizer") if the tokenizer cannot be read or has more tokens than the model, or if
// `name` is empty and the checkpoint has none.
std::unique_ptr<tokenize::Tokenizer> tokenizer_of(const ModelToLoad& load, const std::string& name);
// Returns `name`; if it is empty, the name of the tokenizer saved with the weights. Throws ConfigError (key
// "data.tokenizer") if there is neither.
std::string tokenizer_place(const ModelToLoad& load, const std::string& name);

// Returns run.ranks of the run that wrote the checkpoint; threads if the checkpoint has no configuration.
RanksAs saved_ranks(const std::string& directory);

class LoadedModel {
 public:
  // Loads the weights. `world` has as many ranks as the mesh. Throws RunError if weights are not finite or too large to
  // compute with. Collective.
  LoadedModel(const ModelToLoad& load, Communicator& world);

  const ModelSpec& spec() const { return spec_.model; }
  // Returns the last block's result, computed without gradients and dropout: the mean loss if the microbatch has
  // targets, else logits of the padded vocabulary (s x 1 x v with a cache, else b x t x v). All ranks pass the same
  // microbatch, each with its own cache, and get the same result. Throws CommError. Collective.
  at::Tensor forward(nn::Microbatch microbatch) const;

 private:
  at::Tensor received(const nn::Microbatch& microbatch) const;
  at::Tensor with_whole_vocab(const at::Tensor& y, const nn::Microbatch& microbatch) const;
  at::Tensor result_buffer(const nn::Microbatch& microbatch) const;

  RunSpec spec_;
  Groups groups_;
  RankModel model_;
};

}  // namespace braid::train
