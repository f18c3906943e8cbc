// The model families. A family has its properties, the graph of its blocks, and its config.json and tensors at Hugging
// Face. families/ has a file for each.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/model/objective.h"
#include "braid/model/preset.h"

namespace braid::model {

// The properties of a family's blocks.
enum class FeedForward { Plain, Gated };     // Plain: two matrices, in and out. Gated: three, gate, up and down
enum class KeyHeads { OfEachHead, Shared };  // Shared: groups of heads share keys and values, by model.kv_heads
enum class PositionKind { Learned, Rotary };
// Free: model.head_width, qkv_bias, qk_norm and window may be set. Capped: model.head_width, window, attention_cap,
// logit_cap and query_scalar.
enum class HeadForm { Fixed, Free, Capped };
struct FamilyTraits {
  FeedForward feed_forward;
  KeyHeads key_heads;
  PositionKind positions;
  HeadForm heads;
  int parts = 2;  // of a layer: 2 if its graph has a cut, else 1
  Objective objective = Objective::Causal;
};

// The orientation of a tensor. Transposed: Hugging Face's tensor is [inputs, outputs] (the Conv1D of GPT-2), braid's is
// [outputs, inputs].
enum class Orientation { Same, Transposed };

// The names of a parameter without ".weight" or ".bias". With several of theirs, each holds one segment of ours.
struct HfRow {
  std::string ours;
  std::vector<std::string> theirs;
  Orientation of_matrices = Orientation::Same;
};

// Two names of a tensor, or two ends of such names.
struct HfAlias {
  std::string name, other;
};

struct HfNames {
  std::string prefix;  // prefix of the base model's tensors
  std::string layers;  // prefix before a layer's number
  std::vector<HfRow> in_layer, outside;
  std::vector<std::string> redundant;   // ends of the names of masks and frequencies in older files
  std::string head = "lm_head.weight";  // redundant if the head is tied
  std::vector<HfAlias> copies = {};     // two names of a tensor: equal if the head is tied, else `name` counts
  std::vector<HfAlias> older = {};      // older files have the end `other` in place of `name`
  // Parameters of Hugging Face's class that the model has no op for. They are copied if files have them.
  std::vector<Param> carried = {};
  std::vector<HfRow> of_carried = {};
};

// The config.json of Hugging Face. A class of transformers, which "model_type" names, has keys and defaults of its own.
class HfKeys;
struct HfReader {
  const char* model_type;
  ModelSpec (*read)(const HfKeys& keys);
};
struct HfModelType {
  const char *name, *architecture;
  const char* with_carried = nullptr;  // the architecture that has the carried tensors too
};
struct HfConfig {
  std::vector<HfReader> readers;
  // Returns the simplest model type that can express the model.
  HfModelType (*type_of)(const ModelSpec& spec) = nullptr;
  // Adds the keys that not all types have.
  void (*put)(const ModelSpec& spec, nlohmann::ordered_json& json) = nullptr;
};

struct FamilyBlocks {
  BlockGraph (*embedding)(const ModelSpec& spec);
  BlockGraph (*layer)(const ModelSpec& spec);
  BlockGraph (*head)(const ModelSpec& spec);
  // Layer `number` of a family whose layers differ; all have as many parts. Left out: all layers are `layer`.
  BlockGraph (*layer_at)(const ModelSpec& spec, int number) = nullptr;
};

// REQUIRES: the embedding begins with a lookup, and the head ends with a loss.
struct Family {
  std::string name;  // the word of model.family; other programs may use other_names, or a model type of `config`
  FamilyTraits traits;
  int (*ffn_width)(const ModelSpec& spec);  // features of the feed-forward branch where model.ffn is 0
  FamilyBlocks blocks;
  HfNames names = {};    // left out: the model has no form at Hugging Face
  HfConfig config = {};  // left out with the names
  std::vector<Preset> presets = {};
  std::vector<std::string> other_names = {};
};
// In the order of ModelFamily.
std::span<const Family> families();
std::vector<std::string> family_names();
// Adds a family of the program's own. Its name is then a word of model.family, in configurations, checkpoints and on
// the command line. REQUIRES: nothing of braid has been called before.
ModelFamily add_family(Family family);
bool is_added(ModelFamily family);
// Returns the name of the family, or of the preset, that a word of other programs means; "" if there is none.
std::string_view family_meant(std::string_view word);
std::string_view preset_meant(std::string_view word);
inline const Family& family_of(const ModelSpec& spec) { return families()[static_cast<size_t>(spec.family)]; }

// Returns the graph of the model. REQUIRES: its heads form groups.
ModelGraph graph_of(const ModelSpec& spec);
// Returns the layers' blocks that differ, in the order in which they first appear, and the number of each layer's among
// them.
struct LayerKinds {
  std::vector<BlockGraph> kinds;
  std::vector<int> of_layer;
};
LayerKinds layer_kinds(const ModelSpec& spec, const FamilyBlocks& blocks);
// Returns the graph of a model with these blocks.
ModelGraph graph_of(const ModelSpec& spec, const FamilyBlocks& blocks);

// The rows of a table of token types.
inline constexpr int kTokenTypes = 2;

// Returns the extents of a model's letters, for `sequences` sequences of `tokens` tokens.
Extents extents_of(const ModelSpec& spec, double sequences, double tokens);

// Returns the table that the head reads: "wte", tied to the embedding, or "head".
std::string head_table(const ModelSpec& spec);

}  // namespace braid::model
