// The model of a checkpoint on one rank of the CPU, for what computes with weights and does not train them: text and
// losses. It knows no optimizer and no data.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/spec/run_spec.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/rank_model.h"

namespace braid {

// What to read, before anything of the model's size is made.
struct ModelToLoad {
  std::string directory;
  RunSpec spec;           // of one rank
  std::string tokenizer;  // the checkpoint's own: "bytes" or its folder; empty where it was saved without one
};

// Verifies the checkpoint in `directory`, written on any mesh, and reads its configuration; `dtype` is what is computed
// with, when given, in place of the run's. Throws IoError and ConfigError for a checkpoint that cannot be read.
ModelToLoad model_to_load(const std::string& directory, std::optional<DType> dtype = std::nullopt);

// `name` as data.tokenizer names one; empty: the one saved with the weights, wherever the run's own is today. A path in
// the checkpoint's configuration is never opened, since anybody may have written it. Throws ConfigError (key
// "data.tokenizer") for a tokenizer that cannot be read or that has more tokens than the model, and where `name` is
// empty and the checkpoint has none.
std::unique_ptr<Tokenizer> tokenizer_of(const ModelToLoad& load, const std::string& name);
// What the one saved with the weights is called, or `name`. Throws as tokenizer_of where there is neither.
std::string tokenizer_place(const ModelToLoad& load, const std::string& name);

// As the run that wrote the checkpoint started its ranks.
RanksAs saved_ranks(const std::string& directory);

class LoadedModel {
 public:
  // `world` has one rank, which calls this. Throws RunError for weights not finite or too large to compute with.
  LoadedModel(const ModelToLoad& load, Communicator& world);

  const ModelSpec& spec() const { return spec_.model; }
  // Of the last block, without gradients and without dropout.
  at::Tensor forward(Microbatch microbatch) const;

 private:
  RunSpec spec_;
  RankGroups groups_;
  RankModel model_;
};

}  // namespace braid
