// The model families. A family describes a model to all that reads it: its graph, and its tensors' names at Hugging
// Face. families/ has a file for each.
#pragma once

#include <string>
#include <vector>

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// The orientation of a tensor. Transposed: Hugging Face's tensor is [inputs, outputs] (the Conv1D of GPT-2), braid's is
// [outputs, inputs].
enum class Orientation { Same, Transposed };

// The names of a parameter without ".weight" or ".bias". With several of theirs, each holds one segment of ours.
struct HfRow {
  std::string ours;
  std::vector<std::string> theirs;
  Orientation of_matrices = Orientation::Same;
};

struct HfNames {
  std::string prefix;  // prefix of the base model's tensors
  std::string layers;  // prefix before a layer's number
  std::vector<HfRow> in_layer, outside;
  std::vector<std::string> redundant;  // ends of the names of masks and frequencies in older files
};

struct Family {
  BlockGraph (*embedding)(const ModelSpec& spec);
  BlockGraph (*layer)(const ModelSpec& spec);
  BlockGraph (*head)(const ModelSpec& spec);
  HfNames names;
};
const Family& family_of(const ModelSpec& spec);

// Returns the graph of the model. REQUIRES: its heads form groups.
ModelGraph graph_of(const ModelSpec& spec);

// Returns the extents of a model's letters, for `sequences` sequences of `tokens` tokens.
Extents extents_of(const ModelSpec& spec, double sequences, double tokens);

// Returns the table that the head reads: "wte", tied to the embedding, or "head".
std::string head_table(const ModelSpec& spec);

}  // namespace braid::model
