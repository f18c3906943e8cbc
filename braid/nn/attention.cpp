// The attention core on LibTorch's kernel, or with a cap on braid's.
//
// Views of the fused projection are passed directly to LibTorch's attention. Its CPU kernel is flash attention for
// every type, and for grouped heads too: it never forms the t x t scores, and its backward is deterministic.
#include "braid/nn/attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/nn/head_exchange.h"
#include "braid/nn/head_groups.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/capped_attention.h"
#include "braid/nn/library_attention.h"
#include "braid/nn/ring_attention.h"

namespace braid::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The q, k and v of h query heads and k key and value heads, each of d features.
struct Heads {
  at::Tensor q_bthd, k_btkd, v_btkd;
};

at::Tensor masked_attention(const Heads& heads, const LibraryOptions& options) {
  const at::Tensor q = heads.q_bthd.transpose(1, 2), k = heads.k_btkd.transpose(1, 2), v = heads.v_btkd.transpose(1, 2);
  return library_attention(q, k, v, options).transpose(1, 2);
}

// Returns the queries of the run that begins at `begin`, and the keys and values that they attend to.
Heads seen_by_run(const Heads& heads, int64_t begin, int64_t window) {
  const int64_t t = heads.q_bthd.size(1), end = std::min(begin + window, t),
                first = std::max<int64_t>(0, begin - window + 1);
  const auto part = [](const at::Tensor& x_bthd, int64_t from, int64_t to) { return x_bthd.slice(1, from, to); };
  return {part(heads.q_bthd, begin, end), part(heads.k_btkd, first, end), part(heads.v_btkd, first, end)};
}

at::Tensor run_attention(const Heads& heads, const CoreCall& call) {
  const int64_t t = heads.q_bthd.size(1), window = call.window;
  check(window == 0 || call.sees == model::Sees::Earlier, "a window is one of earlier tokens");
  const std::optional<double> scale = call.scale > 0 ? std::optional(call.scale) : std::nullopt;
  if (window == 0 || t <= window) return masked_attention(heads, {call.sees, {}, scale});
  std::vector<at::Tensor> y{masked_attention(seen_by_run(heads, 0, window), {call.sees, {}, scale})};
  // In every run but the first, key j is window - 1 - j tokens before the run's begin. So query i attends to keys i to
  // i + window - 1. All runs keep views of one mask, in the type in which LibTorch would convert it for each.
  const int64_t most = std::min(window, t - window);  // tokens of a run
  const auto options = heads.q_bthd.options();
  const at::Tensor hidden =
      at::ones({most, window - 1 + most}, options.dtype(at::kBool)).triu().tril(window - 1).logical_not_();
  const at::Tensor band =
      at::zeros(hidden.sizes(), options).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  for (int64_t begin = window; begin < t; begin += window) {
    const Heads run = seen_by_run(heads, begin, window);
    const at::Tensor mask = band.narrow(0, 0, run.q_bthd.size(1)).narrow(1, 0, run.k_btkd.size(1));
    y.push_back(masked_attention(run, {call.sees, mask, scale}));
  }
  return at::cat(y, 1);
}

// Returns the number of tokens of each run of tokens of one document, over all sequences in order.
std::vector<int64_t> document_extents(const at::Tensor& documents_bt) {
  const at::Tensor host = documents_bt.cpu().contiguous();
  const int64_t b = host.size(0), t = host.size(1);
  const int64_t* document = host.const_data_ptr<int64_t>();
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < b * t; ++i) {
    const bool begins = i % t == 0 || document[i] != document[i - 1];
    check(i % t == 0 || document[i] >= document[i - 1], "the documents of a sequence lie one after another");
    if (begins) extents.push_back(0);
    ++extents.back();
  }
  return extents;
}

// Computes each document by itself. So it needs no mask for documents and computes no scores that a mask would hide.
// The backward of split_with_sizes is one copy.
at::Tensor document_attention(const Heads& heads, const CoreCall& call) {
  const at::Tensor& documents_bt = call.documents_bt;
  const auto extents = document_extents(documents_bt);
  if (static_cast<int64_t>(extents.size()) == documents_bt.size(0)) return run_attention(heads, call);
  const auto runs = [&](const at::Tensor& x_bthd) {
    return x_bthd.flatten(0, 1).unsqueeze(0).split_with_sizes(extents, 1);
  };
  const auto q = runs(heads.q_bthd), k = runs(heads.k_btkd), v = runs(heads.v_btkd);
  std::vector<at::Tensor> y;
  for (size_t i = 0; i < extents.size(); ++i) y.push_back(run_attention({q[i], k[i], v[i]}, call));
  return at::cat(y, 1);
}

// Returns the first token that each of b sequences' t tokens attends to.
at::Tensor first_seen(int64_t b, int64_t t, const CoreCall& call) {
  const at::Tensor begin = at::arange(t, at::kLong).sub_(call.window > 0 ? call.window - 1 : t).clamp_min_(0);
  const at::Tensor first_bt = begin.expand({b, t}).contiguous();
  if (!call.documents_bt.defined()) return first_bt;
  int64_t *const first = first_bt.mutable_data_ptr<int64_t>(), token = 0;
  for (const int64_t extent : document_extents(call.documents_bt)) {
    for (int64_t i = 0; i < extent; ++i) first[token + i] = std::max(first[token + i], token % t);
    token += extent;
  }
  return first_bt;
}

kernels::CappedAttention capped_call(const at::Tensor& qkv_btf, const CoreCall& call) {
  const int64_t b = qkv_btf.size(0), t = qkv_btf.size(1), width = qkv_btf.size(2) / (call.heads + 2 * call.kv_heads);
  return {call.heads,
          call.kv_heads,
          call.cap,
          score_scale(call.scale, width),
          first_seen(b, t, call),
          at::arange(1, t + 1, at::kLong).expand({b, t}).contiguous()};
}

// Returns the queries, keys and values of qkv_btf, or of a tensor of its sizes.
kernels::CappedTensors capped_tensors(const at::Tensor& qkv_btf, const CoreCall& call) {
  const int64_t width = qkv_btf.size(2) / (call.heads + 2 * call.kv_heads);
  const int64_t q = call.heads * width, kv = call.kv_heads * width;
  return {qkv_btf.narrow(2, 0, q), qkv_btf.narrow(2, q, kv), qkv_btf.narrow(2, q + kv, kv)};
}

struct CappedCore : Function<CappedCore> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_btf, const CoreCall& call) {
    check(qkv_btf.is_cpu(), "capped attention is computed on CPUs");
    check(call.sees == model::Sees::Earlier, "capped attention sees earlier tokens alone");
    const kernels::CappedOutput output =
        kernels::capped_attention(capped_tensors(qkv_btf.detach(), call), capped_call(qkv_btf, call));
    ctx->save_for_backward({qkv_btf, output.y_btf, output.norm_bht});
    keep(ctx, call);
    return output.y_btf;
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& call = kept<CoreCall>(ctx);
    const at::Tensor dqkv_btf = at::empty_like(saved[0]);
    kernels::capped_attention_backward(capped_tensors(saved[0].detach(), call), capped_call(saved[0], call),
                                       {saved[1], saved[2]}, grads[0].contiguous(), capped_tensors(dqkv_btf, call));
    return {dqkv_btf, {}};
  }
};

at::Tensor attend(const at::Tensor& qkv_btf, const CoreCall& call);

// Attention of whole sequences between two exchanges. A rank without heads takes part in the exchanges alone.
at::Tensor exchanged_attention(const at::Tensor& qkv_btf, const CoreCall& call) {
  Communicator* const ranks = call.context.exchange;
  const HeadExchange inputs{{call.heads, call.kv_heads, call.kv_heads}, call.kv_heads, ranks};
  const HeadExchange outputs{{call.heads}, call.kv_heads, ranks};
  CoreCall of_rank = call;
  of_rank.context.exchange = nullptr;
  of_rank.memory = CoreMemory::AllHeads;
  of_rank.kv_heads = inputs.groups_of(ranks->rank());
  of_rank.heads = call.heads / call.kv_heads * of_rank.kv_heads;
  const at::Tensor qkv_of_heads = tokens_to_heads(qkv_btf, inputs);
  const int64_t head_width = qkv_btf.size(2) / (call.heads + 2 * call.kv_heads);
  return heads_to_tokens(of_rank.heads > 0 ? attend(qkv_of_heads, of_rank) : qkv_of_heads, outputs, head_width);
}

at::Tensor attention_of_parts(const at::Tensor& qkv_btf, const CoreCall& call) {
  const SeenTokens seen{call.sees, call.window, call.documents_bt};
  return ring_attention(
      qkv_btf, {call.heads, call.kv_heads, {call.cap, call.scale}, seen, call.context.ring, call.context.keys});
}

// Computes each entry of the batch, which is one key head of a sequence with its queries, by a call of its own. So
// LibTorch aligns its outputs and gradients alike and its threads divide them alike, and the bits of an entry do not
// depend on the number of others.
std::vector<at::Tensor> attention_of_each(const at::Tensor& qkv_btf, CoreCall call) {
  call.memory = CoreMemory::AllHeads;
  const at::Tensor documents_bt = call.documents_bt;
  std::vector<at::Tensor> y;
  for (const at::Tensor& qkv_1tf : qkv_btf.split(1)) {
    if (documents_bt.defined()) call.documents_bt = documents_bt.narrow(0, std::ssize(y), 1);
    y.push_back(attend(qkv_1tf, call));
  }
  return y;
}

at::Tensor attend(const at::Tensor& qkv_btf, const CoreCall& call) {
  if (call.context.exchange) return exchanged_attention(qkv_btf, call);
  if (call.context.ring) return attention_of_parts(qkv_btf, call);
  if (call.memory == CoreMemory::KeyHeads) return at::cat(attention_of_each(qkv_btf, call));
  if (call.cap > 0) return CappedCore::apply(qkv_btf, call);
  const int64_t b = qkv_btf.size(0), t = qkv_btf.size(1), h = call.heads, k = call.kv_heads;
  // The backward of split_with_sizes is one copy. Those of three slices would each allocate a gradient of full size.
  const auto parts = qkv_btf.view({b, t, h + 2 * k, -1}).split_with_sizes({h, k, k}, 2);
  const Heads heads{parts[0], parts[1], parts[2]};
  const at::Tensor y_bthd = call.documents_bt.defined() ? document_attention(heads, call) : run_attention(heads, call);
  return y_bthd.reshape({b, t, -1});
}

// The recomputation of the core, with a graph of its own. The first backward that needs it starts it: that of the next
// product or that of the core. The core's backward then frees it.
class SecondRun {
 public:
  SecondRun(const at::Tensor& qkv_btf, CoreCall call) : saved_(qkv_btf), call_(std::move(call)) {}

  at::Tensor output() {
    if (!y_btf_.defined()) {
      check(saved_.has_value(), "the backward of an attention core that is run again runs once");
      const c10::AutoGradMode grad(true);
      qkv_btf_ = std::exchange(saved_, std::nullopt)->tensor().detach().requires_grad_(true);
      y_btf_ = attend(qkv_btf_, call_);
    }
    return y_btf_.detach();
  }

  at::Tensor gradient(const at::Tensor& dy_btf) {
    output();
    const at::Tensor y_btf = std::exchange(y_btf_, {}), qkv_btf = std::exchange(qkv_btf_, {});
    return torch::autograd::grad({y_btf}, {qkv_btf}, {dy_btf}).at(0);
  }

 private:
  std::optional<SavedTensor> saved_;
  at::Tensor qkv_btf_, y_btf_;  // of the run, until the core's backward
  CoreCall call_;
};

struct RunTwice : Function<RunTwice> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_btf, const CoreCall& call,
                            const std::shared_ptr<SecondRun>& second) {
    keep(ctx, second);
    return attend(qkv_btf, call);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    return {kept<std::shared_ptr<SecondRun>>(ctx)->gradient(grads[0]), {}, {}};
  }
};

}  // namespace

double score_scale(double scale, int64_t head_width) {
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(head_width));
}

namespace {

Activation kept_core(const at::Tensor& qkv_btf, const CoreCall& call) {
  if (call.keep == Keep::Everything && call.memory == CoreMemory::KeyHeads) {
    // Backward keeps the output of each call, so the joined ones are not kept.
    const std::vector<at::Tensor> y = attention_of_each(qkv_btf, call);
    const std::vector<SavedTensor> kept(y.begin(), y.end());
    const auto again = [kept] {
      std::vector<at::Tensor> parts;
      for (const SavedTensor& each : kept) parts.push_back(each.tensor());
      return at::cat(parts);
    };
    return {at::cat(y), again};
  }
  if (call.keep == Keep::Everything) return attend(qkv_btf, call);
  const auto second = std::make_shared<SecondRun>(qkv_btf, call);
  return {RunTwice::apply(qkv_btf, call, second), [second] { return second->output(); }};
}

// The heads come out of the copy again when they are needed, so that only the copy is kept.
Activation grouped_core(const at::Tensor& qkv_btf, const CoreCall& call) {
  const int64_t each = call.heads / call.kv_heads, width = qkv_btf.size(2) / (call.heads + 2 * call.kv_heads);
  CoreCall of_groups = call;
  of_groups.heads = each, of_groups.kv_heads = 1;
  of_groups.scale = score_scale(call.scale, width);
  if (call.documents_bt.defined()) of_groups.documents_bt = call.documents_bt.repeat_interleave(call.kv_heads, 0);
  const HeadGroups outputs{call.kv_heads, width, {each}};
  const Activation y = kept_core(group_heads(qkv_btf, {call.kv_heads, width, {each, 1, 1}}), of_groups);
  const auto again = [outputs, value = SavedTensor(y.again ? at::Tensor() : y.value), of_copy = y.again] {
    return ungroup_heads(of_copy ? of_copy() : value.tensor(), outputs);
  };
  return {ungroup_heads(y.value, outputs), again};
}

}  // namespace

Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call) {
  const bool has_context = call.context.exchange || call.context.ring;
  return call.memory == CoreMemory::KeyHeads && !has_context ? grouped_core(qkv_btf, call) : kept_core(qkv_btf, call);
}

}  // namespace braid::nn
