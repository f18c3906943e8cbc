// The builder of parameter lists. It derives placements from the whole model's shapes.
#include "braid/nn/model_params.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace braid::nn {

void ParamList::add(layout::ParamSpec param) {
  param.part = part_;
  block_.params.push_back(std::move(param));
}

void ParamList::add_matrix(const std::string& name, const mesh::Placement& placement, double std) {
  add({name, placement, {model::Init::Kind::Normal, std}, model::WeightDecay::Yes});
}

void ParamList::add_linear(const std::string& name, const mesh::Placement& placement, double std) {
  add_matrix(name, placement, std);
  block_.params.back().linear = model::LinearMap::Yes;
}

void ParamList::add_vector(const std::string& name, const mesh::Placement& placement, model::Init::Kind kind) {
  add({name, placement, {kind}, model::WeightDecay::No});
}

void ParamList::add_norm(const std::string& name, Bias bias) {
  add_vector(name + ".weight", mesh::replicated({spec_.width}), model::Init::Kind::Ones);
  if (bias == Bias::With) add_vector(name + ".bias", mesh::replicated({spec_.width}), model::Init::Kind::Zeros);
}

void ParamList::add_head_norm(const std::string& name) {
  add_vector(name + ".weight", mesh::replicated({model::head_width(spec_)}), model::Init::Kind::Ones);
}

void ParamList::add_column(const std::string& name, const mesh::Index& segments, Bias bias) {
  const int64_t outputs = std::accumulate(segments.begin(), segments.end(), int64_t{0});
  add_linear(name + ".weight", mesh::split_segments({outputs, spec_.width}, 0, segments, share_), spec_.init_std);
  if (bias == Bias::With) {
    add_vector(name + ".bias", mesh::split_segments({outputs}, 0, segments, share_), model::Init::Kind::Zeros);
  }
}

void ParamList::add_row(const std::string& name, int64_t inputs, Bias bias) {
  const double std = spec_.init_std / std::sqrt(2.0 * spec_.layers);
  add_linear(name + ".weight", mesh::split_dim({spec_.width, inputs}, 1, inputs, share_), std);
  if (bias == Bias::With) add_vector(name + ".bias", mesh::replicated({spec_.width}), model::Init::Kind::Zeros);
}

void ParamList::add_token_table(const std::string& name, int use, int uses) {
  add_matrix(name, mesh::split_dim({spec_.vocab, spec_.width}, 0, model::padded_vocab(spec_, share_.parts), share_),
             spec_.init_std);
  block_.params.back().use = use;
  block_.params.back().uses = uses;
}

void ParamList::add_head_table() {
  const int uses = token_table_uses(spec_);
  add_token_table(head_table(spec_), uses - 1, uses);
}

void ParamList::add_position_table(const std::string& name) {
  add_matrix(name, mesh::replicated({spec_.context, spec_.width}), spec_.init_std);
}

int token_table_uses(const ModelSpec& spec) { return spec.output_weights == OutputWeights::Tied ? 2 : 1; }

std::string head_table(const ModelSpec& spec) {
  return spec.output_weights == OutputWeights::Tied ? "wte.weight" : "head.weight";
}

}  // namespace braid::nn
