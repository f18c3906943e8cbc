// Names of ops and values, read from the graph.
#include "braid/verify/subjects.h"

#include <algorithm>
#include <utility>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/spec/masking.h"

namespace braid::verify {
namespace {

using model::BlockGraph;
using model::Op;

// Returns the name of the last op that reads the value, whose backward is the first to make a gradient. That of a
// block's output comes from the next block as it is, perhaps from another rank.
std::string reader_of(const model::ModelGraph& graph, size_t block, int value) {
  const BlockGraph& ops = graph.block(block);
  for (size_t op = ops.ops.size(); op-- > 0;) {
    if (std::ranges::count(ops.ops[op].in, value) == 0) continue;
    return model::op_name(graph, block, ops.ops[op]);
  }
  return block + 1 < graph.blocks.size() ? cat("gradient message into ", model::block_name(graph, block))
                                         : "seed of backward";
}

double last_extent(const model::Extents& extents, const model::Dims& dims) {
  return dims.empty() ? 1 : extents.of(dims.back());
}

double longest_sum(const model::Extents& extents, const BlockGraph& block, const Op& op) {
  double longest = last_extent(extents, block.values[op.out]);
  for (const int value : op.in) longest = std::max(longest, last_extent(extents, block.values[value]));
  if (op.kind == model::OpKind::Attention) longest = std::max(longest, extents['t']);
  if (op.kind == model::OpKind::Loss) longest = std::max({longest, extents['v'], extents['b'] * extents['t']});
  return longest;
}

model::Extents extents_of(const RunSpec& spec) {
  return model::extents_of(spec.model, spec.train.microbatch, spec.model.context);
}

double tokens_of_step(const RunSpec& spec) { return 1.0 * spec.train.batch * spec.model.context; }

}  // namespace

Subjects::Subjects(const RunSpec& spec) : graph_(model::graph_of(spec.model)) {
  // In the order of Input.
  for (const char* const input : {"tokens", "picked rows", "targets", "documents", "dropout key", "samples"}) {
    add({"batch", "", input});
  }
  const int num_blocks = static_cast<int>(graph_.blocks.size());
  for (int block = 0; block < num_blocks; ++block) add_values(spec, block);
  for (int block = 0; block < num_blocks; ++block) add_params(spec, block);
  loss_ = add({cat(model::block_name(graph_, num_blocks - 1), " loss"), "", "loss", tokens_of_step(spec)});
  add({"gradient norm", "", "gradient norm", tokens_of_step(spec)});
}

int Subjects::add(Subject subject) {
  all_.push_back(std::move(subject));
  return static_cast<int>(all_.size()) - 1;
}

void Subjects::add_values(const RunSpec& spec, int number) {
  const model::Extents extents = extents_of(spec);
  const BlockGraph& block = graph_.block(number);
  const std::string name = model::block_name(graph_, number);
  const auto dims = [&](int value) { return model::text_of(block.values[value]); };
  if (number > 0) {
    values_[{number, 0, nn::ValueKind::Input}] =
        add({cat("message into ", name), reader_of(graph_, number, 0), cat("input ", dims(0))});
  }
  for (const Op& op : block.ops) {
    Subject made{model::op_name(graph_, number, op), reader_of(graph_, number, op.out), cat("output ", dims(op.out)),
                 longest_sum(extents, block, op)};
    if (op.kind == model::OpKind::Loss) {
      made.tensor = "loss of a microbatch";
      values_[{number, op.out, nn::ValueKind::Logits}] = add({made.op, "", "logits", made.longest_sum});
    }
    values_[{number, op.out, nn::ValueKind::Output}] = add(made);
    // A pipeline that is cut here sends it.
    values_[{number, op.out, nn::ValueKind::Input}] =
        add({cat("message of ", made.op), made.reader, cat("input ", dims(op.out)), made.longest_sum});
  }
}

void Subjects::add_params(const RunSpec& spec, int number) {
  const BlockGraph& block = graph_.block(number);
  for (const Op& op : block.ops) {
    for (const model::Param& param : op.params) {
      const std::string name = model::param_name(graph_, number, param);
      if (params_.contains(name)) continue;
      params_[name] = add({model::op_name(graph_, number, op), "", name, tokens_of_step(spec)});
    }
  }
}

}  // namespace braid::verify
