// Traces shapes with one microbatch of each size. Across each stage border it sends the length of a description, the
// description, and the tensors.
#include "braid/module/shape_trace.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/module_store.h"

namespace braid::modules {
namespace {

at::Tensor described(const std::vector<TensorSpec>& specs) {
  std::vector<int64_t> words;
  for (const TensorSpec& spec : specs) {
    words.push_back(static_cast<int64_t>(spec.type));
    words.push_back(spec.requires_grad ? 1 : 0);
    words.push_back(static_cast<int64_t>(spec.sizes.size()));
    words.insert(words.end(), spec.sizes.begin(), spec.sizes.end());
  }
  return at::tensor(words, at::kLong);
}

std::vector<TensorSpec> read_description(const at::Tensor& words) {
  std::vector<TensorSpec> specs;
  const int64_t* at = words.const_data_ptr<int64_t>();
  for (const int64_t* end = at + words.numel(); at < end;) {
    TensorSpec spec{{}, static_cast<at::ScalarType>(at[0]), at[1] != 0};
    spec.sizes.assign(at + 3, at + 3 + at[2]);
    at += 3 + at[2];
    specs.push_back(std::move(spec));
  }
  return specs;
}

class StageMessages {
 public:
  explicit StageMessages(Communicator& pipe) : pipe_(pipe) {}

  void send(int peer, int border, const Tensors& tensors) {
    const at::Tensor words = described(specs_of(tensors));
    start(P2p::Kind::Send, at::tensor({words.numel()}, at::kLong), peer, border);
    start(P2p::Kind::Send, words, peer, border);
    for (const auto& tensor : tensors) start(P2p::Kind::Send, tensor.detach().contiguous(), peer, border);
  }
  std::vector<TensorSpec> receive(int peer, int border, Tensors& tensors) {
    const at::Tensor length = at::empty({1}, at::kLong);
    start(P2p::Kind::Recv, length, peer, border).wait_host();
    const at::Tensor words = at::empty({length.item<int64_t>()}, at::kLong);
    start(P2p::Kind::Recv, words, peer, border).wait_host();
    auto specs = read_description(words);
    for (const TensorSpec& spec : specs) {
      tensors.push_back(spec.empty());
      start(P2p::Kind::Recv, tensors.back(), peer, border).wait_host();
    }
    return specs;
  }
  void finish() {
    for (Work& send : works_) send.wait_host();
  }

 private:
  Work& start(P2p::Kind kind, const at::Tensor& tensor, int peer, int border) {
    const P2p transfer{kind, tensor, peer, border};
    return works_.emplace_back(pipe_.batch({&transfer, 1}));
  }

  Communicator& pipe_;
  std::vector<Work> works_;
};

// Runs a stage on copies of its inputs, because layers that work in place must not write leaves or the previous stage's
// outputs.
Tensors traced(const LayerStage& stage, const Tensors& inputs, StageShapes& found) {
  Tensors copies;
  for (const auto& input : inputs) copies.push_back(input.clone());
  const AuxiliaryLossScope auxiliary;
  Tensors outputs = stage.forward(copies, ForwardPurpose::ShapeTrace);
  for (const auto& copy : copies) found.written.push_back(copy._version() > 0);
  found.contributes = auxiliary.total().defined();
  return outputs;
}

}  // namespace

at::Tensor TensorSpec::empty() const { return at::empty(sizes, at::TensorOptions().dtype(type)); }

std::string text(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> words;
  for (const TensorSpec& spec : specs) {
    words.push_back(
        cat(c10::toString(spec.type), "[", at::IntArrayRef(spec.sizes), "]", spec.requires_grad ? "+grad" : ""));
  }
  return joined(words);
}

std::vector<TensorSpec> specs_of(const Tensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) {
    specs.push_back({tensor.sizes().vec(), tensor.scalar_type(), tensor.requires_grad()});
  }
  return specs;
}

std::map<int, StageShapes> trace_shapes(const std::map<int, LayerStage>& stages, const Schedule& schedule,
                                        Communicator& pipe, const Tensors& inputs) {
  std::map<int, StageShapes> shapes;
  StageMessages messages(pipe);
  Tensors flow;  // outputs of the last stage that ran on this rank
  for (const auto& [number, stage] : stages) {
    const KeptBuffers kept(stage.buffers());  // restores buffers, which must not include the traced microbatch
    const int before = number == 0 ? pipe.rank() : schedule.stage_rank[number - 1];
    StageShapes& found = shapes[number];
    if (number == 0) {
      flow = inputs;
      found.inputs = specs_of(flow);
    } else if (before == pipe.rank()) {
      found.inputs = specs_of(flow);
      for (auto& tensor : flow) tensor = tensor.detach();
    } else {
      flow.clear();
      found.inputs = messages.receive(before, number - 1, flow);
    }
    for (size_t i = 0; i < flow.size(); ++i) {
      if (found.inputs[i].requires_grad) flow[i].requires_grad_(true);
    }
    stage.listeners().begin_microbatch({.purpose = ForwardPurpose::ShapeTrace});
    flow = traced(stage, flow, found);
    found.outputs = specs_of(flow);
    const bool last = number + 1 == schedule.num_stages;
    if (!last && schedule.stage_rank[number + 1] != pipe.rank())
      messages.send(schedule.stage_rank[number + 1], number, flow);
  }
  messages.finish();
  return shapes;
}

ShapeCache::ShapeCache(const std::map<int, LayerStage>& stages, const Schedule& schedule, Communicator& pipe)
    : stages_(stages), schedule_(schedule), pipe_(pipe) {}

ShapeCache::MinibatchShapes ShapeCache::find(const Tensors& inputs, ForwardPurpose purpose) {
  const c10::AutoGradMode grad(purpose == ForwardPurpose::Training);
  const int root = schedule_.stage_rank.at(0);
  at::Tensor words = at::tensor({0, 0, 0}, at::kLong);
  int64_t* facts = words.mutable_data_ptr<int64_t>();
  std::string kind;
  if (pipe_.rank() == root) {
    require_rows(inputs, purpose);
    kind = cat(static_cast<int>(purpose), " ", text(specs_of(inputs)));
    const auto found = numbers_.find(kind);
    const bool fresh = found == numbers_.end();
    facts[0] = inputs[0].size(0);
    facts[1] = fresh ? next_number_++ : found->second;
    facts[2] = fresh ? 1 : 0;
  }
  pipe_.broadcast(words, root).wait_host();
  MinibatchSplit split{facts[0], schedule_.num_microbatches};
  if (purpose == ForwardPurpose::Evaluation && split.rows < split.num_microbatches) {
    split.num_microbatches = static_cast<int>(split.rows);
  }
  const auto trace_all = [&] {
    shapes_by_kind_[facts[1]] = trace(inputs, split);
    if (pipe_.rank() == root) numbers_.emplace(kind, facts[1]);  // only after trace(), because a layer may throw
  };
  run_traces(facts[2] != 0 ? split.num_kinds() : 0, trace_all);
  return {split, &shapes_by_kind_.at(facts[1])};
}

void ShapeCache::require_rows(const Tensors& inputs, ForwardPurpose purpose) const {
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

std::vector<std::map<int, StageShapes>> ShapeCache::trace(const Tensors& inputs, const MinibatchSplit& split) const {
  std::vector<std::map<int, StageShapes>> shapes;
  for (int kind = 0; kind < split.num_kinds(); ++kind) {
    Tensors parts;
    for (const auto& input : inputs) {
      if (stages_.contains(0)) parts.push_back(split.part(input, split.first_of_kind(kind)));
    }
    shapes.push_back(trace_shapes(stages_, schedule_, pipe_, parts));
  }
  return shapes;
}

}  // namespace braid::modules
