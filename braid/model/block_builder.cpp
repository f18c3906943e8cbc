// The ops of transformers with their parameters.
#include "braid/model/block_builder.h"

#include <algorithm>
#include <cmath>

#include "braid/base/text.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"

namespace braid::model {
namespace {

Dims with_last(Dims dims, Dim last) {
  dims.back() = std::move(last);
  return dims;
}

Param vector_of(const std::string& name, Dims dims, Init::Kind init) { return {name, std::move(dims), {init}}; }

}  // namespace

BlockBuilder::BlockBuilder(const ModelSpec& spec, std::string_view input) : spec_(spec) {
  block_.values.push_back(dims_of(input));
}

const Dims& BlockBuilder::last() const {
  const Dims& dims = block_.values[last_];
  check_graph(!dims.empty(), "an op reads a loss");
  return dims;
}

BlockBuilder& BlockBuilder::add(OpKind kind, Dims out, std::vector<Param> params, std::vector<int> more) {
  std::vector<int> in{last_};
  in.insert(in.end(), more.begin(), more.end());
  last_ = static_cast<int>(block_.values.size());
  block_.ops.push_back({kind, &row_of(kind), std::move(in), last_, std::move(params)});
  block_.values.push_back(std::move(out));
  return *this;
}

Param BlockBuilder::matrix(const std::string& name, Dims dims) const {
  return {name + ".weight", std::move(dims), {Init::Kind::Normal, spec_.init_std}, WeightDecay::Yes};
}

BlockBuilder& BlockBuilder::dropout() { return spec_.dropout > 0 ? apply(OpKind::Dropout) : *this; }

BlockBuilder& BlockBuilder::apply(OpKind kind) { return add(kind, last(), {}); }

BlockBuilder& BlockBuilder::norm(OpKind kind, const std::string& name) {
  std::vector<Param> params{vector_of(name + ".weight", {last().back()}, Init::Kind::Ones)};
  if (kind == OpKind::LayerNorm) params.push_back(vector_of(name + ".bias", {last().back()}, Init::Kind::Zeros));
  return add(kind, last(), std::move(params));
}

BlockBuilder& BlockBuilder::norm_of_one_plus(const std::string& name) {
  add(OpKind::RmsNorm, last(), {vector_of(name + ".weight", {last().back()}, Init::Kind::Zeros)});
  block_.ops.back().offset = 1;
  return *this;
}

BlockBuilder& BlockBuilder::head_norms(const std::string& name) {
  return add(OpKind::HeadNorm, last(),
             {vector_of(name + "_q.weight", dims_of("d"), Init::Kind::Ones),
              vector_of(name + "_k.weight", dims_of("d"), Init::Kind::Ones)});
}

BlockBuilder& BlockBuilder::linear(const std::string& name, std::string_view out) {
  const Dims one = dims_of(out);
  check_graph(one.size() == 1, cat("a linear map has one dim of output, not \"", out, "\""));
  const Dim& to = one[0];
  Dims dims{to, last().back()};
  if (last().size() == 2) dims.insert(dims.begin(), dims_of("e")[0]);
  Param weight = matrix(name, std::move(dims));
  weight.linear = LinearMap::Yes;
  if (out == "c") weight.init.std /= std::sqrt(2.0 * spec_.layers);
  linear_ = name;
  return add(OpKind::Linear, with_last(last(), to), {std::move(weight)});
}

BlockBuilder& BlockBuilder::bias() {
  Dims dims{last().back()};
  if (last().size() == 2) dims.insert(dims.begin(), dims_of("e")[0]);
  return add(OpKind::Bias, last(), {vector_of(linear_ + ".bias", std::move(dims), Init::Kind::Zeros)});
}

BlockBuilder& BlockBuilder::attention(int window, Sees sees) {
  add(OpKind::Attention, with_last(last(), {{last().back().segments[0]}}), {});
  Op& op = block_.ops.back();
  op.cap = spec_.attention_cap;
  if (0 < window && window < spec_.context && op.cap == 0) {      // with a cap there are no runs
    const double run = std::min(window, spec_.context - window);  // the first run needs no mask
    op.mask = run * (window - 1 + run);
  }
  op.window = window;
  op.sees = sees;
  op.tokens_seen = sees == Sees::All ? spec_.context : mean_tokens_seen(spec_.context, window);
  if (spec_.query_scalar > 0) op.scale = 1 / std::sqrt(spec_.query_scalar);
  return *this;
}

BlockBuilder& BlockBuilder::gated(OpKind kind) {
  return add(kind, with_last(last(), {{last().back().segments[0]}}), {});
}

BlockBuilder& BlockBuilder::join() {
  plus(hidden_);
  hidden_ = last_;
  return *this;
}

BlockBuilder& BlockBuilder::plus(int value) {
  check_graph(0 <= value && value < std::ssize(block_.values), cat("plus(", value, ") adds no value of the block"));
  return add(OpKind::Residual, last(), {}, {value});
}

BlockBuilder& BlockBuilder::from(int value) {
  check_graph(0 <= value && value < std::ssize(block_.values), cat("from(", value, ") names no value of the block"));
  last_ = value;
  return *this;
}

BlockBuilder& BlockBuilder::opaque(std::shared_ptr<const OpaqueFunction> function, std::string_view out,
                                   const std::vector<OpaqueParam>& params) {
  std::vector<Param> all;
  for (const auto& [name, dims, init] : params) {
    const bool is_normal = init == Init::Kind::Normal;
    all.push_back(
        {name, dims_of(dims), {init, is_normal ? spec_.init_std : 0}, is_normal ? WeightDecay::Yes : WeightDecay::No});
  }
  add(OpKind::Opaque, dims_of(out), std::move(all));
  block_.ops.back().function = std::move(function);
  return *this;
}

BlockBuilder& BlockBuilder::cut() {
  block_.cuts.push_back(static_cast<int>(block_.ops.size()));
  return *this;
}

BlockBuilder& BlockBuilder::to_experts(const std::string& name) {
  if (spec_.experts == 0) return *this;
  tokens_ = last_;
  linear(name, "s").apply(OpKind::Route);
  scores_ = block_.ops.back().out;
  return add(OpKind::Dispatch, dims_of("rc"), {}, {tokens_});
}

BlockBuilder& BlockBuilder::from_experts() {
  if (spec_.experts == 0) return *this;
  return add(OpKind::Combine, dims_of("btc"), {}, {scores_});
}

BlockBuilder& BlockBuilder::lookup(const std::string& name, double scale) {
  add(OpKind::Lookup, dims_of("btc"), {matrix(name, dims_of("vc"))});
  block_.ops.back().scale = scale;
  return *this;
}

BlockBuilder& BlockBuilder::positions(const std::string& name) {
  return add(OpKind::Positions, last(), {matrix(name, dims_of("pc"))});
}

BlockBuilder& BlockBuilder::token_types(const std::string& name) {
  return add(OpKind::TokenTypes, last(), {matrix(name, dims_of("gc"))});
}

BlockBuilder& BlockBuilder::pick_rows() { return add(OpKind::PickRows, dims_of("bjc"), {}); }

BlockBuilder& BlockBuilder::loss(const std::string& table, const std::string& bias) {
  std::vector<Param> params{matrix(table, dims_of("vc"))};
  if (!bias.empty()) params.push_back(vector_of(bias + ".bias", dims_of("v"), Init::Kind::Zeros));
  add(OpKind::Loss, {}, std::move(params));
  block_.ops.back().cap = spec_.logit_cap;
  return *this;
}

}  // namespace braid::model
