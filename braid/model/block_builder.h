// Builds the graph of a block op by op. Each op reads the value that the op before it made, unless from() names
// another.
#pragma once

#include <string>
#include <string_view>

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// A parameter of a program's own function. Normal draws, of model.init_std, decay; zeros and ones do not.
struct OpaqueParam {
  std::string name;
  std::string_view dims;
  Init::Kind init = Init::Kind::Normal;
};

// Matrices start as normal draws of model.init_std and decay. Those that write to the hidden state start with
// init_std / sqrt(2 layers). Biases start at zero, norms at one; neither decays.
// Source: Radford et al. 2019 (GPT-2), section 2.3.
//
// Each call throws ConfigError where its text or a value's number is a mistake. problems_of() (graph.h) finds all
// others.
class BlockBuilder {
 public:
  // `input`: the dims of the block's input. `spec` outlives the builder.
  BlockBuilder(const ModelSpec& spec, std::string_view input);

  // Dropout, in a model that has it.
  BlockBuilder& dropout();
  // An op without parameters that makes a value of the same dims.
  BlockBuilder& apply(OpKind kind);
  // LayerNorm with NAME.weight and NAME.bias, RmsNorm with NAME.weight.
  BlockBuilder& norm(OpKind kind, const std::string& name);
  // RMSNorm that multiplies by 1 + NAME.weight. The weight starts at zero.
  BlockBuilder& norm_of_one_plus(const std::string& name);
  // RMSNorm of the heads of queries and of keys, with NAME_q.weight and NAME_k.weight.
  BlockBuilder& head_norms(const std::string& name);
  // A product with NAME.weight [out, the last dim]; `out` is one dim. Among experts the weight has a matrix for each.
  BlockBuilder& linear(const std::string& name, std::string_view out);
  // Adds the bias of the linear map before it.
  BlockBuilder& bias();
  BlockBuilder& attention() { return attention(spec_.window); }
  // Attention with this window, model.attention_cap and model.query_scalar.
  BlockBuilder& attention(int window, Sees sees = Sees::Earlier);
  BlockBuilder& swiglu() { return gated(OpKind::SwiGlu); }
  BlockBuilder& geglu() { return gated(OpKind::GeGlu); }
  // Adds the hidden state, which the next branch reads.
  BlockBuilder& join();
  // Adds `value` to the last one.
  BlockBuilder& plus(int value);
  // Marks a place at which the model may be cut.
  BlockBuilder& cut();

  // A function of the program's own. Where tensor ranks split a letter, each calls the function with its part of the
  // tensors.
  BlockBuilder& opaque(std::shared_ptr<const OpaqueFunction> function, std::string_view out,
                       const std::vector<OpaqueParam>& params = {});

  // Returns the number of the last value, for from() and plus().
  int value() const { return last_; }
  // Lets the next op read `value`.
  BlockBuilder& from(int value);

  // Sends each token to its experts, by the router NAME.weight; does nothing in a model without experts.
  BlockBuilder& to_experts(const std::string& name);
  // Sums the experts' rows of each token.
  BlockBuilder& from_experts();

  BlockBuilder& lookup(const std::string& name, double scale = 0);
  BlockBuilder& positions(const std::string& name);
  BlockBuilder& token_types(const std::string& name);
  BlockBuilder& pick_rows();
  // The loss of logits with model.logit_cap. `bias`: the name of a bias of the logits; "": none.
  BlockBuilder& loss(const std::string& table, const std::string& bias = "");

  BlockGraph build() const { return block_; }

 private:
  Param matrix(const std::string& name, Dims dims) const;
  BlockBuilder& gated(OpKind kind);
  BlockBuilder& add(OpKind kind, Dims out, std::vector<Param> params, std::vector<int> more = {});
  const Dims& last() const;

  const ModelSpec& spec_;
  BlockGraph block_;
  int last_ = 0;                 // the value that the next op reads
  int hidden_ = 0;               // the value that the next residual adds
  int tokens_ = 0, scores_ = 0;  // what the router read and made
  std::string linear_;           // the name of the last linear map
};

}  // namespace braid::model
