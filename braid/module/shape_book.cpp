// The first stage's rank decides whether shapes must be found out; the others follow.
#include "braid/module/shape_book.h"

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::modules {

ShapeBook::ShapeBook(const std::map<int, LayerStage>& stages, const Schedule& schedule, Communicator& pipe)
    : stages_(stages), schedule_(schedule), pipe_(pipe) {}

ShapeBook::Opening ShapeBook::open(const Tensors& inputs, ForwardPurpose purpose) {
  const c10::AutoGradMode grad(purpose == ForwardPurpose::Training);
  const int root = schedule_.stage_rank.at(0);
  at::Tensor words = at::tensor({0, 0, 0}, at::kLong);
  int64_t* word = words.mutable_data_ptr<int64_t>();
  std::string kind;
  if (pipe_.rank() == root) {
    require_rows(inputs, purpose);
    kind = cat(static_cast<int>(purpose), " ", text(specs_of(inputs)));
    const auto found = numbers_.find(kind);
    const bool fresh = found == numbers_.end();
    word[0] = inputs[0].size(0);
    word[1] = fresh ? next_number_++ : found->second;
    word[2] = fresh ? 1 : 0;
  }
  pipe_.broadcast(words, root).wait_host();
  MinibatchSplit split{word[0], schedule_.num_microbatches};
  if (purpose == ForwardPurpose::Evaluation && split.rows < split.num_microbatches) {
    split.num_microbatches = static_cast<int>(split.rows);
  }
  if (word[2] != 0) {
    pages_[word[1]] = trace(inputs, split);
    if (pipe_.rank() == root) numbers_.emplace(kind, word[1]);  // only now: a layer may have thrown
  }
  return {split, &pages_.at(word[1])};
}

void ShapeBook::require_rows(const Tensors& inputs, ForwardPurpose purpose) const {
  std::vector<Problem> problems;
  const int64_t least = purpose == ForwardPurpose::Training ? schedule_.num_microbatches : 1;
  if (inputs.empty()) problems.push_back({"inputs", "", "must be given on the rank of the first stage", ""});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string key = cat("inputs[", i, "]");
    const bool splits = inputs[i].defined() && inputs[i].dim() > 0;
    if (!splits) {
      problems.push_back({key, "", "must have a dimension to split", ""});
    } else if (inputs[i].size(0) < least) {
      problems.push_back(
          {key, cat(inputs[i].size(0), " rows"), cat("must have a row for each microbatch (", least, ")"), cat(least)});
    } else if (inputs[0].defined() && inputs[0].dim() > 0 && inputs[i].size(0) != inputs[0].size(0)) {
      problems.push_back(
          {key, cat(inputs[i].size(0), " rows"), "must have as many rows as inputs[0]", cat(inputs[0].size(0))});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

std::vector<std::map<int, StageShapes>> ShapeBook::trace(const Tensors& inputs, const MinibatchSplit& split) const {
  std::vector<std::map<int, StageShapes>> page;
  for (int kind = 0; kind < split.num_kinds(); ++kind) {
    Tensors parts;
    for (const auto& input : inputs) {
      if (stages_.contains(0)) parts.push_back(split.part(input, split.first_of_kind(kind)));
    }
    page.push_back(trace_shapes(stages_, schedule_, pipe_, parts));
  }
  return page;
}

}  // namespace braid::modules
