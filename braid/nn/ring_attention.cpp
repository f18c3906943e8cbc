// The merge keeps, for each query, the output so far and the logarithm of its sum of exponentials:
//
//   l' = log(e^l + e^m),   y' = e^(l - l') y + e^(m - l') z      of the outputs y with l and z with m
//
// Backward meets the same blocks again. With the final output and logarithm each block's gradients are exact parts of
// the sum, and the gradients of keys and values go around the ring behind them.
#include "braid/nn/ring_attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int kHalvesTag = 0, kKeysTag = 1, kGradientsTag = 2;

// The halves of the sequences, and where they are.
struct Halves {
  Halves(const RingCall& call, int64_t own_tokens) : ranks(*call.ranks), length(own_tokens / 2) {
    check(own_tokens % 2 == 0, "a rank has an even number of tokens");
  }
  int64_t count() const { return 2 * ranks.size(); }
  // Returns the rank that has the half around the ring.
  int ring_rank(int64_t half) const { return static_cast<int>(half < ranks.size() ? half : count() - 1 - half); }
  std::array<int64_t, 2> of_ring(int rank) const { return {rank, count() - 1 - rank}; }
  TokenRange tokens(int64_t half) const { return {half * length, (half + 1) * length}; }

  Communicator& ranks;
  const int64_t length;
};

enum class Way { ToRing, FromRing };

// Moves halves between the order of the hidden state and that of the ring. x_btf: two halves. Messages are tagged by
// their half, since two of them may go between the same ranks.
at::Tensor moved(const at::Tensor& x_btf, const Halves& halves, Way way) {
  Communicator& ranks = halves.ranks;
  const int own = ranks.rank();
  const auto in_order = [](int rank) { return std::array<int64_t, 2>{2 * int64_t{rank}, 2 * int64_t{rank} + 1}; };
  const auto in_ring = [&](int rank) { return halves.of_ring(rank); };
  const auto from = way == Way::ToRing ? in_order(own) : in_ring(own);
  const auto to = way == Way::ToRing ? in_ring(own) : in_order(own);
  const auto other_rank = [&](int64_t half, bool sends) {
    return sends == (way == Way::ToRing) ? halves.ring_rank(half) : static_cast<int>(half / 2);
  };
  std::vector<P2p> transfers;
  std::array<at::Tensor, 2> parts;
  for (int place = 0; place < 2; ++place) {
    const at::Tensor half = x_btf.narrow(1, place * halves.length, halves.length).contiguous();
    const int peer = other_rank(from[place], true);
    if (peer == own) parts[to[0] == from[place] ? 0 : 1] = half;
    if (peer != own) transfers.push_back({P2p::Kind::Send, half, peer, static_cast<int>(3 * from[place]) + kHalvesTag});
  }
  for (int place = 0; place < 2; ++place) {
    if (parts[place].defined()) continue;
    parts[place] = at::empty_like(x_btf.narrow(1, 0, halves.length), at::MemoryFormat::Contiguous);
    const int tag = static_cast<int>(3 * to[place]) + kHalvesTag;
    transfers.push_back({P2p::Kind::Recv, parts[place], other_rank(to[place], false), tag});
  }
  ranks.batch(transfers).order_before(ranks.queue());
  return at::cat({parts[0], parts[1]}, 1);
}

// Passes a tensor to the next rank of the ring while the rank computes.
class Passing {
 public:
  Passing(Communicator& ranks, const at::Tensor& out, int tag) : ranks_(ranks), in_(at::empty_like(out)) {
    const int n = ranks.size(), next = (ranks.rank() + 1) % n, last = (ranks.rank() + n - 1) % n;
    const std::array<P2p, 2> transfers{P2p{P2p::Kind::Send, out, next, tag}, P2p{P2p::Kind::Recv, in_, last, tag}};
    work_ = ranks.batch(transfers);
  }
  // Returns the tensor of the rank before this one.
  at::Tensor received() {
    work_.order_before(ranks_.queue());
    return in_;
  }

 private:
  Communicator& ranks_;
  at::Tensor in_;
  Work work_;
};

// The tensors of two halves, heads before tokens.
struct RingTensors {
  at::Tensor q_bhtd;
  at::Tensor kv_2bktd;  // keys, values
};

RingTensors ring_tensors(const at::Tensor& qkv_btf, const RingCall& call, const Halves& halves) {
  const int64_t b = qkv_btf.size(0), t = qkv_btf.size(1), h = call.heads, k = call.kv_heads;
  const at::Tensor rows = moved(qkv_btf, halves, Way::ToRing).view({b, t, h + 2 * k, -1}).transpose(1, 2);
  const at::Tensor kv = rows.narrow(1, h, 2 * k).unflatten(1, {2, k}).transpose(0, 1);
  return {rows.narrow(1, 0, h).contiguous(), kv.contiguous()};
}

// Returns the tensor in the type of computation.
at::Tensor widened(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

// A block's parts of tensors whose dims 0 and 2 are sequences and the tokens of a half.
struct BlockView {
  BlockView(const AttentionBlock& block, int64_t queries, int64_t keys)
      : at(block), query(block.query - queries), key(block.key - keys) {}
  at::Tensor queries(const at::Tensor& x) const {
    return x.narrow(0, at.sequence, at.num_sequences).narrow(2, query, at.num_queries);
  }
  at::Tensor keys(const at::Tensor& x) const {
    return x.narrow(0, at.sequence, at.num_sequences).narrow(2, key, at.num_keys);
  }
  const AttentionBlock& at;
  const int64_t query, key;
};

// Returns the scores' summands of a block at the edge of a window: 0 for keys that a query sees.
std::optional<at::Tensor> mask_of(const AttentionBlock& block, const at::Tensor& like) {
  if (block.window == 0) return std::nullopt;
  const at::Tensor query = at::arange(block.query, block.query + block.num_queries, at::kLong).unsqueeze(1);
  const at::Tensor key = at::arange(block.key, block.key + block.num_keys, at::kLong);
  const at::Tensor hidden = key.gt(query).logical_or_(key.le(query.sub(block.window)));
  return at::zeros(hidden.sizes(), like.options()).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

std::optional<double> scale_of(const RingCall& call) {
  return call.scale > 0 ? std::optional(call.scale) : std::nullopt;
}

// Calls `body` for each block between the halves of this rank and those that `source` had at the start.
template <class Body>
void for_each_block(const RingCall& call, const Halves& halves, int64_t b, int source, const Body& body) {
  const auto own = halves.of_ring(halves.ranks.rank()), theirs = halves.of_ring(source);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const TokenRange queries = halves.tokens(own[i]), keys = halves.tokens(theirs[j]);
      for (const AttentionBlock& block : blocks_between(queries, keys, b, call)) {
        body(BlockView(block, queries.begin - i * halves.length, keys.begin - j * halves.length));
      }
    }
  }
}

struct RingOutput {
  at::Tensor y_bhtd, log_bht;
};

void merge_(RingOutput& all, const BlockView& block, const at::Tensor& y, const at::Tensor& log) {
  const at::Tensor merged_log = block.queries(all.log_bht), merged = block.queries(all.y_bhtd);
  const at::Tensor sum = at::logaddexp(merged_log, log);
  merged.mul_(merged_log.sub(sum).exp_().unsqueeze(-1)).add_(y.mul(log.sub(sum).exp_().unsqueeze(-1)));
  merged_log.copy_(sum);
}

std::vector<int64_t> of_all_ranks(const at::Tensor& kv_2bktd, const RingCall& call) {
  std::vector<int64_t> sizes = kv_2bktd.sizes().vec();
  sizes.insert(sizes.begin(), call.ranks->size());
  return sizes;
}

// Sees that the keys and values of all ranks come by. Each `meet` has those of one rank.
template <class Meet>
void for_each_rank(const at::Tensor& kv_2bktd, const RingCall& call, const Meet& meet) {
  const int n = call.ranks->size(), own = call.ranks->rank();
  if (call.keys == RingKeys::Gathered) {
    const at::Tensor all = at::empty(of_all_ranks(kv_2bktd, call), kv_2bktd.options());
    call.ranks->all_gather(all, kv_2bktd).order_before(call.ranks->queue());
    for (int rank = 0; rank < n; ++rank) meet(rank, all[rank]);
    return;
  }
  at::Tensor kv = kv_2bktd;
  for (int step = 0; step < n; ++step) {
    std::optional<Passing> passing;
    if (step + 1 < n) passing.emplace(*call.ranks, kv, kKeysTag);
    meet((own + n - step) % n, kv);
    if (passing) kv = passing->received();
  }
}

// Brings each rank the sum of its keys' and values' gradients, in the order in which for_each_rank() meets ranks.
class KeyGradients {
 public:
  KeyGradients(const at::Tensor& kv_2bktd, const RingCall& call)
      : call_(call), sizes_(kv_2bktd.sizes().vec()), options_(widened(kv_2bktd.narrow(3, 0, 0)).options()) {
    if (call.keys == RingKeys::Gathered) all_ = at::zeros(of_all_ranks(kv_2bktd, call), options_);
  }
  // Returns zeros to which the blocks of `rank` add theirs. What was added for the rank before goes on meanwhile.
  at::Tensor begin(int rank) {
    if (all_.defined()) return all_[rank];
    if (sums_.defined()) passing_.emplace(*call_.ranks, sums_, kGradientsTag);
    return own_ = at::zeros(sizes_, options_);
  }
  void end() {
    if (all_.defined()) return;
    sums_ = passing_ ? own_.add_(passing_->received()) : own_;
    passing_.reset();
  }
  at::Tensor received() {
    if (!all_.defined()) return Passing(*call_.ranks, sums_, kGradientsTag).received();
    const at::Tensor own = at::empty(sizes_, options_);
    call_.ranks->reduce_scatter(own, all_, ReduceOp::Sum).order_before(call_.ranks->queue());
    return own;
  }

 private:
  const RingCall& call_;
  const std::vector<int64_t> sizes_;
  const at::TensorOptions options_;
  at::Tensor all_, own_, sums_;  // sums_: so far, of the keys that go around
  std::optional<Passing> passing_;
};

RingOutput ring_forward(const RingTensors& x, const RingCall& call, const Halves& halves) {
  const at::Tensor q_bhtd = widened(x.q_bhtd);
  RingOutput all{at::zeros(q_bhtd.sizes(), q_bhtd.options()),
                 at::full(q_bhtd.sizes().slice(0, 3), -std::numeric_limits<double>::infinity(), q_bhtd.options())};
  for_each_rank(x.kv_2bktd, call, [&](int rank, const at::Tensor& narrow_kv) {
    const at::Tensor kv = widened(narrow_kv);
    for_each_block(call, halves, q_bhtd.size(0), rank, [&](const BlockView& block) {
      const auto [y, log] = at::_scaled_dot_product_flash_attention_for_cpu(block.queries(q_bhtd), block.keys(kv[0]),
                                                                            block.keys(kv[1]), 0.0, block.at.causal,
                                                                            mask_of(block.at, q_bhtd), scale_of(call));
      merge_(all, block, y, log);
    });
  });
  return all;
}

struct RingGradients {
  at::Tensor dq_bhtd, dkv_2bktd;
};

RingGradients ring_backward(const RingTensors& x, const RingOutput& out, const at::Tensor& dy_bhtd,
                            const RingCall& call, const Halves& halves) {
  const at::Tensor q_bhtd = widened(x.q_bhtd), y_bhtd = widened(out.y_bhtd), dq_bhtd = at::zeros_like(q_bhtd);
  KeyGradients sums(x.kv_2bktd, call);
  for_each_rank(x.kv_2bktd, call, [&](int rank, const at::Tensor& narrow_kv) {
    const at::Tensor kv = widened(narrow_kv), dkv = sums.begin(rank);
    for_each_block(call, halves, q_bhtd.size(0), rank, [&](const BlockView& block) {
      const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          block.queries(dy_bhtd), block.queries(q_bhtd), block.keys(kv[0]), block.keys(kv[1]), block.queries(y_bhtd),
          block.queries(out.log_bht), 0.0, block.at.causal, mask_of(block.at, q_bhtd), scale_of(call));
      block.queries(dq_bhtd).add_(dq);
      block.keys(dkv[0]).add_(dk);
      block.keys(dkv[1]).add_(dv);
    });
    sums.end();
  });
  return {dq_bhtd, sums.received()};
}

struct Ring : Function<Ring> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_btf, const RingCall& call) {
    const Halves halves(call, qkv_btf.size(1));
    const RingTensors x = ring_tensors(qkv_btf.detach(), call, halves);
    const RingOutput out = ring_forward(x, call, halves);
    const at::Tensor y_bhtd = out.y_bhtd.to(qkv_btf.scalar_type());
    ctx->save_for_backward({x.q_bhtd, x.kv_2bktd, y_bhtd, out.log_bht});
    keep(ctx, call);
    return in_order(y_bhtd, halves);
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& call = kept<RingCall>(ctx);
    const at::Tensor& dy_btf = grads[0];
    const Halves halves(call, dy_btf.size(1));
    const at::Tensor dy_bhtd =
        widened(moved(dy_btf, halves, Way::ToRing).unflatten(2, {call.heads, -1}).transpose(1, 2));
    const RingGradients sums = ring_backward({saved[0], saved[1]}, {saved[2], saved[3]}, dy_bhtd, call, halves);
    const at::Tensor all = at::cat({sums.dq_bhtd, sums.dkv_2bktd[0], sums.dkv_2bktd[1]}, 1);
    return {in_order(all.to(dy_btf.scalar_type()), halves), {}};
  }

  static at::Tensor in_order(const at::Tensor& x_bhtd, const Halves& halves) {
    return moved(x_bhtd.transpose(1, 2).flatten(2), halves, Way::FromRing);
  }
};

// Returns the ranges of tokens of one document in `tokens`.
std::vector<TokenRange> documents_in(const TokenRange& tokens, const int64_t* documents) {
  std::vector<TokenRange> ranges;
  for (int64_t token = tokens.begin; token < tokens.end; ++token) {
    if (ranges.empty() || documents[token] != documents[token - 1]) ranges.push_back({token, token});
    ranges.back().end = token + 1;
  }
  return ranges;
}

// Appends the blocks of queries and keys of one document. Under a window, runs of `window` queries meet the keys that
// they see.
void append_blocks(const TokenRange& queries, const TokenRange& keys, const TokenRange& sequences, const RingCall& call,
                   std::vector<AttentionBlock>& blocks) {
  const bool earlier = call.sees == model::Sees::Earlier, same = queries.begin == keys.begin;
  if (earlier && keys.begin > queries.begin) return;
  const auto append = [&](const TokenRange& q, const TokenRange& k, bool causal, int64_t window) {
    blocks.push_back({sequences.begin, sequences.end - sequences.begin, q.begin, q.end - q.begin, k.begin,
                      k.end - k.begin, causal, window});
  };
  if (call.window == 0 || queries.end - keys.begin <= call.window) return append(queries, keys, earlier && same, 0);
  for (int64_t begin = queries.begin; begin < queries.end; begin += call.window) {
    const TokenRange seen{std::max(keys.begin, begin - call.window + 1), std::min(keys.end, begin + call.window)};
    const TokenRange run{begin, std::min({queries.end, begin + call.window, seen.end + call.window - 1})};
    if (seen.begin < seen.end && run.begin < run.end) append(run, seen, false, call.window);
  }
}

}  // namespace

std::vector<AttentionBlock> blocks_between(const TokenRange& queries, const TokenRange& keys, int64_t b,
                                           const RingCall& call) {
  std::vector<AttentionBlock> blocks;
  if (!call.documents_bt.defined()) {
    append_blocks(queries, keys, {0, b}, call, blocks);
    return blocks;
  }
  const at::Tensor documents_bt = call.documents_bt.contiguous();
  for (int64_t sequence = 0; sequence < b; ++sequence) {
    const auto* const documents = documents_bt.const_data_ptr<int64_t>() + sequence * documents_bt.size(1);
    for (const TokenRange& q : documents_in(queries, documents)) {
      for (const TokenRange& k : documents_in(keys, documents)) {
        if (documents[q.begin] == documents[k.begin]) append_blocks(q, k, {sequence, sequence + 1}, call, blocks);
      }
    }
  }
  return blocks;
}

at::Tensor ring_attention(const at::Tensor& qkv_btf, const RingCall& call) { return Ring::apply(qkv_btf, call); }

}  // namespace braid::nn
