// The tables of Hugging Face's names. nn/gpt2.h and nn/llama.h define the names of braid's parameters.
#include "braid/weights/hf_tensors.h"

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/nn/model.h"

namespace braid::weights {
namespace {

// The names of a parameter without ".weight" or ".bias".
struct HfRow {
  std::string ours;
  std::vector<std::string> theirs;  // in order; each holds a range of our rows
  Orientation of_matrices = Orientation::Same;
};

struct HfTable {
  std::string prefix;  // prefix of the base model's tensors
  std::string layers;  // prefix before a layer's number
  std::vector<HfRow> in_layer, outside;
};

const HfTable& gpt2_table() {
  static const HfTable kTable{"transformer.",
                              "transformer.h.",
                              {{"ln_1", {"ln_1"}},
                               {"attention.qkv", {"attn.c_attn"}, Orientation::Transposed},
                               {"attention.projection", {"attn.c_proj"}, Orientation::Transposed},
                               {"ln_2", {"ln_2"}},
                               {"mlp.up", {"mlp.c_fc"}, Orientation::Transposed},
                               {"mlp.down", {"mlp.c_proj"}, Orientation::Transposed}},
                              {{"wte", {"transformer.wte"}},
                               {"wpe", {"transformer.wpe"}},
                               {"ln_f", {"transformer.ln_f"}},
                               {"head", {"lm_head"}}}};
  return kTable;
}

// The names of Llama, Mistral, Qwen 2 and Qwen 3. Both sides form rotary pairs from the two halves of a head, so rows
// keep their order.
const HfTable& llama_table() {
  static const HfTable kTable{"model.",
                              "model.layers.",
                              {{"norm_1", {"input_layernorm"}},
                               {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                               {"attention.norm_q", {"self_attn.q_norm"}},
                               {"attention.norm_k", {"self_attn.k_norm"}},
                               {"attention.projection", {"self_attn.o_proj"}},
                               {"norm_2", {"post_attention_layernorm"}},
                               {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
                               {"mlp.down", {"mlp.down_proj"}}},
                              {{"wte", {"model.embed_tokens"}}, {"norm_f", {"model.norm"}}, {"head", {"lm_head"}}}};
  return kTable;
}

const HfTable& table_of(const ModelSpec& spec) {
  return spec.family == ModelFamily::Gpt2 ? gpt2_table() : llama_table();
}

// Returns the rows of each part of a tensor with `all` rows.
std::vector<int64_t> rows_of_parts(const ModelSpec& spec, size_t parts, int64_t all) {
  if (parts == 1) return {all};
  if (parts == 2) return {all / 2, all / 2};
  const int64_t kv = int64_t{model::num_kv_heads(spec)} * model::head_width(spec);
  return {all - 2 * kv, kv, kv};
}

// The parts of a name: "attention.qkv", ".weight" and "model.layers.3." for "blocks.3.attention.qkv.weight".
struct SplitName {
  std::string middle, end, prefix;
  bool in_layer = false;
};

SplitName split_name(const HfTable& table, const std::string& name) {
  SplitName split;
  const std::string blocks = "blocks.";
  split.in_layer = name.starts_with(blocks);
  std::string rest = name;
  if (split.in_layer) {
    const size_t dot = name.find('.', blocks.size());
    split.prefix = table.layers + name.substr(blocks.size(), dot + 1 - blocks.size());
    rest = name.substr(dot + 1);
  }
  const size_t last = rest.rfind('.');
  split.middle = rest.substr(0, last);
  split.end = rest.substr(last);
  return split;
}

void add_parts(const ModelSpec& spec, const layout::ParamSpec& param, std::vector<HfTensor>& all) {
  const HfTable& table = table_of(spec);
  const SplitName name = split_name(table, param.name);
  const auto& rows = name.in_layer ? table.in_layer : table.outside;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const HfRow& each) { return each.ours == name.middle; });
  check(row != rows.end(), "every parameter of a family has a name at Hugging Face");
  const mesh::Index& shape = param.placement.global_shape;
  const auto counts = rows_of_parts(spec, row->theirs.size(), shape[0]);
  int64_t first = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    mesh::Index part = shape;
    part[0] = counts[i];
    const bool transposed = row->of_matrices == Orientation::Transposed && shape.size() == 2;
    if (transposed) std::swap(part[0], part[1]);
    all.push_back({name.prefix + row->theirs[i] + name.end, part, param.name, first, counts[i], shape,
                   transposed ? Orientation::Transposed : Orientation::Same});
    first += counts[i];
  }
}

}  // namespace

std::vector<HfTensor> hf_tensors(const ModelSpec& spec) {
  std::vector<HfTensor> all;
  std::set<std::string> seen;
  for (const layout::BlockSpec& block : nn::model_params(spec, 0, 1)) {
    for (const layout::ParamSpec& param : block.params) {
      if (seen.insert(param.name).second) add_parts(spec, param, all);
    }
  }
  return all;
}

std::string hf_base_prefix(const ModelSpec& spec) { return table_of(spec).prefix; }

bool is_redundant(const ModelSpec& spec, const std::string& name) {
  if (name == "lm_head.weight") return spec.output_weights == OutputWeights::Tied;
  if (spec.family != ModelFamily::Gpt2) return name.ends_with(".rotary_emb.inv_freq");
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace braid::weights
