// The tensors of a Hugging Face model, by name, and the rows of braid's tensors to which they correspond, read
// from its graph and its family's names. docs/weights.md prints it.
//
//   blocks.3.attention.qkv.weight   rows of queries   model.layers.3.self_attn.q_proj.weight
//                                   rows of keys      model.layers.3.self_attn.k_proj.weight
//                                   rows of values    model.layers.3.self_attn.v_proj.weight
#pragma once

#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/model/families.h"

namespace braid::weights {

using model::Orientation;

struct HfTensor {
  std::string name;       // "model.layers.3.self_attn.k_proj.weight"
  mesh::Index shape;      // Hugging Face's shape
  std::string whole;      // braid's tensor, which has it as some of its rows
  int64_t first_row = 0;  // first row in `whole`
  int64_t num_rows = 0;
  mesh::Index whole_shape;  // shape of `whole`
  Orientation orientation = Orientation::Same;
};

// Returns all tensors of a model, in the order of braid's parameters. The parts of one of braid's tensors are
// neighbours and cover it. REQUIRES: `spec.vocab` is resolved.
std::vector<HfTensor> hf_tensors(const ModelSpec& spec);

// Returns the tensors of Hugging Face's class that the model has no op for, but that files may have.
std::vector<HfTensor> hf_carried(const ModelSpec& spec);

// Returns the tensors that an untied model has at Hugging Face under a second name too. Transformers reads the bias of
// BERT's logits by its second name unless config.json ties the head.
std::vector<HfTensor> hf_copies(const ModelSpec& spec);

// Returns the prefix that the files of a base model leave out of every name: "transformer." (gpt2) or "model.".
std::string hf_base_prefix(const ModelSpec& spec);

// Returns true for a tensor whose values follow from the model's configuration or other tensors: masks and frequencies
// in older files, and a head that is tied to the embedding.
bool is_redundant(const ModelSpec& spec, const std::string& name);

}  // namespace braid::weights
