// Dispatch by family.
#include "braid/nn/model.h"

#include <set>

#include "braid/base/errors.h"
#include "braid/nn/gpt2.h"
#include "braid/nn/llama.h"

namespace braid::nn {
namespace {

// In the order of ModelFamily.
constexpr ModelMaker kFamilies[] = {
    {gpt2_params, gpt2_block},
    {llama_params, llama_block},
};

static_assert(std::size(kFamilies) == kWords<ModelFamily>.size());

}  // namespace

const ModelMaker& model_maker(const ModelSpec& spec) {
  check(spec.experts == 0, "a mixture of experts is planned alone, and refused before it is built");
  return kFamilies[static_cast<size_t>(spec.family)];
}

param::ModelParams model_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  return model_maker(spec).params(spec, tensor_rank, tensor_size);
}

std::unique_ptr<Block> model_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank) {
  return model_maker(spec).block(spec, piece, store, rank);
}

int64_t count_params(const ModelSpec& spec) {
  std::set<std::string> seen;
  int64_t count = 0;
  for (const param::BlockSpec& block : model_params(spec, 0, 1)) {
    for (const param::ParamSpec& param : block.params) {
      if (seen.insert(param.name).second) count += mesh::num_elements(param.placement.global_shape);
    }
  }
  return count;
}

}  // namespace braid::nn
