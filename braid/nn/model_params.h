// Rows of a model's parameter list that families share: cuts over the tensor axis, initial values, decay.
// Knows no tensor: checkpoints and planners read such lists too.
//
// Matrices start as normal draws of model.init_std and decay; those that write to the residual stream start with
// init_std / sqrt(2 layers). Biases start at zero, norms at one, neither decays.
// Columns and rows are linear maps, tables of tokens and positions are not.
// Source: Radford et al. 2019 (GPT-2), section 2.3; cuts as in Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <string>

#include "braid/layout/param_spec.h"
#include "braid/model/shape.h"

namespace braid::nn {

enum class Bias { With, Without };

// Adds to one block's list what one tensor rank holds. It refers to `spec` and `block`, which outlive it.
class ParamList {
 public:
  // `share`: of the tensor axis.
  ParamList(const ModelSpec& spec, mesh::Share share, layout::BlockSpec& block)
      : spec_(spec), share_(share), block_(block) {}

  // Assigns parameters added from here on to that half of a transformer block.
  void begin(layout::BlockPart part) { part_ = part; }
  // NAME.weight [c], and NAME.bias [c].
  void add_norm(const std::string& name, Bias bias);
  // NAME.weight [d], replicated: of a head's features, the same for all heads.
  void add_head_norm(const std::string& name);
  // NAME.weight [sum of segments, c] split by outputs, each segment by itself, and NAME.bias.
  void add_column(const std::string& name, const mesh::Index& segments, Bias bias);
  // NAME.weight [c, inputs] split by inputs, and NAME.bias, replicated.
  void add_row(const std::string& name, int64_t inputs, Bias bias);
  // NAME [v, c] split by rows, padded: use `use` of `uses`.
  void add_token_table(const std::string& name, int use, int uses);
  // The head's table of tokens: head.weight, or the second use of wte.weight.
  void add_head_table();
  // NAME [t, c], replicated.
  void add_position_table(const std::string& name);

 private:
  void add_matrix(const std::string& name, const mesh::Placement& placement, double std);
  void add_linear(const std::string& name, const mesh::Placement& placement, double std);
  void add_vector(const std::string& name, const mesh::Placement& placement, model::Init::Kind kind);
  void add(layout::ParamSpec param);

  const ModelSpec& spec_;
  mesh::Share share_;
  layout::BlockSpec& block_;
  layout::BlockPart part_ = layout::BlockPart::Whole;
};

// In how many places a model reads its token embedding.
int token_table_uses(const ModelSpec& spec);
// "wte.weight" or "head.weight".
std::string head_table(const ModelSpec& spec);

}  // namespace braid::nn
