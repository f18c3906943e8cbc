// The trace sends, per border: how long the description is, the description, the tensors.
#include "braid/module/shape_trace.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/kept_buffers.h"

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

class BorderLine {
 public:
  explicit BorderLine(Communicator& pipe) : pipe_(pipe) {}

  void send(int peer, int border, const Tensors& tensors) {
    const at::Tensor words = described(specs_of(tensors));
    post(P2p::Kind::Send, at::tensor({words.numel()}, at::kLong), peer, border);
    post(P2p::Kind::Send, words, peer, border);
    for (const auto& tensor : tensors) post(P2p::Kind::Send, tensor.detach().contiguous(), peer, border);
  }
  std::vector<TensorSpec> receive(int peer, int border, Tensors& tensors) {
    const at::Tensor length = at::empty({1}, at::kLong);
    post(P2p::Kind::Recv, length, peer, border).wait_host();
    const at::Tensor words = at::empty({length.item<int64_t>()}, at::kLong);
    post(P2p::Kind::Recv, words, peer, border).wait_host();
    auto specs = read_description(words);
    for (const TensorSpec& spec : specs) {
      tensors.push_back(spec.empty());
      post(P2p::Kind::Recv, tensors.back(), peer, border).wait_host();
    }
    return specs;
  }
  void finish() {
    for (Work& send : works_) send.wait_host();
  }

 private:
  Work& post(P2p::Kind kind, const at::Tensor& tensor, int peer, int border) {
    const P2p transfer{kind, tensor, peer, border};
    return works_.emplace_back(pipe_.batch({&transfer, 1}));
  }

  Communicator& pipe_;
  std::vector<Work> works_;
};

// Layers get copies: those that work in place may neither write a leaf nor what the stage before has given.
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
  BorderLine line(pipe);
  Tensors flow;  // of the last stage that ran here
  for (const auto& [number, stage] : stages) {
    const KeptBuffers kept(stage.buffers());  // must not see the traced microbatch
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
      found.inputs = line.receive(before, number - 1, flow);
    }
    for (size_t i = 0; i < flow.size(); ++i) {
      if (found.inputs[i].requires_grad) flow[i].requires_grad_(true);
    }
    stage.listeners().begin_microbatch({.purpose = ForwardPurpose::ShapeTrace});
    flow = traced(stage, flow, found);
    found.outputs = specs_of(flow);
    const bool last = number + 1 == schedule.num_stages;
    if (!last && schedule.stage_rank[number + 1] != pipe.rank())
      line.send(schedule.stage_rank[number + 1], number, flow);
  }
  line.finish();
  return shapes;
}

}  // namespace braid::modules
