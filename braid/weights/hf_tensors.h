// The tensors of a Hugging Face model, by name, and what each is of braid's: one table for each shape of model.
// It knows names and shapes, no values and no files. docs/weights.md prints it.
//
//   blocks.3.attention.qkv.weight   rows of queries   model.layers.3.self_attn.q_proj.weight
//                                   rows of keys      model.layers.3.self_attn.k_proj.weight
//                                   rows of values    model.layers.3.self_attn.v_proj.weight
#pragma once

#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/spec/model_spec.h"

namespace braid::weights {

// Transposed: Hugging Face's tensor is [inputs, outputs] (the Conv1D of GPT-2), braid's [outputs, inputs].
enum class Orientation { Same, Transposed };

struct HfTensor {
  std::string name;       // "model.layers.3.self_attn.k_proj.weight"
  mesh::Index shape;      // as Hugging Face has it
  std::string whole;      // the tensor of braid's that it is rows of
  int64_t first_row = 0;  // in that
  int64_t num_rows = 0;
  mesh::Index whole_shape;  // of that
  Orientation orientation = Orientation::Same;
};

// All of a model, in its order; those of one tensor of braid's are neighbours and cover it. `spec.vocab` is resolved.
std::vector<HfTensor> hf_tensors(const ModelSpec& spec);

// Returns the prefix that a base model's files leave out of every name: "transformer." (gpt2) or "model.".
std::string hf_base_prefix(const ModelSpec& spec);

// Returns true for a tensor that repeats what the model says: masks and frequencies of older files, and a head that is
// tied to the embedding.
bool is_redundant(const ModelSpec& spec, const std::string& name);

}  // namespace braid::weights
