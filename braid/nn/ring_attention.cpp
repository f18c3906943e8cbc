// The merge keeps, for each query, the output so far and the logarithm of its sum of exponentials:
//
//   l' = log(e^l + e^m),   y' = e^(l - l') y + e^(m - l') z      of the outputs y with l and z with m
//
// Backward meets the same blocks again. With the final output and logarithm each block's gradients are exact parts of
// the sum, and the gradients of keys and values go around the ring behind them.
#include "braid/nn/ring_attention.h"

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
#include <utility>

#include "braid/nn/kept.h"
#include "braid/nn/ring_halves.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

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

// The tensors of this rank's two halves, [2, b, s, heads x features]. kv: keys, then values.
struct RingTensors {
  at::Tensor q_2bsf, kv_2bsf;
};

RingTensors ring_tensors(const at::Tensor& qkv_btf, const RingCall& call, const Halves& halves) {
  const int64_t queries = qkv_btf.size(2) / (call.heads + 2 * call.kv_heads) * call.heads;
  return {to_ring(qkv_btf.narrow(2, 0, queries), halves),
          to_ring(qkv_btf.narrow(2, queries, qkv_btf.size(2) - queries), halves)};
}

// Returns the tensor in the type of computation.
at::Tensor widened(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

// A block's parts of tensors of two halves, [b, heads, tokens, features].
struct BlockView {
  at::Tensor queries(const at::Tensor& x_2bsf) const {
    return part(x_2bsf[query_half], at.query - query_begin, at.num_queries).unflatten(2, {heads, -1}).transpose(1, 2);
  }
  at::Tensor log(const at::Tensor& log_2bsh) const {
    return part(log_2bsh[query_half], at.query - query_begin, at.num_queries).transpose(1, 2);
  }
  BlockTensors tensors(const at::Tensor& q_2bsf, const at::Tensor& kv_2bsf) const {
    const at::Tensor kv = of_kv(kv_2bsf);
    return {queries(q_2bsf), kv[0], kv[1]};
  }

  const AttentionBlock& at;
  const int64_t query_half, query_begin, key_half, key_begin;
  const int64_t heads, kv_heads;

 private:
  at::Tensor part(const at::Tensor& x_bsf, int64_t begin, int64_t count) const {
    return x_bsf.narrow(0, at.sequence, at.num_sequences).narrow(1, begin, count);
  }
  at::Tensor of_kv(const at::Tensor& kv_2bsf) const {
    return part(kv_2bsf[key_half], at.key - key_begin, at.num_keys)
        .unflatten(2, {2, kv_heads, -1})
        .permute({2, 0, 3, 1, 4});
  }
};

// Calls `body` for each block between the halves of this rank and those that `source` had at the start.
template <class Body>
void for_each_block(const RingCall& call, const Halves& halves, int64_t b, int source, const Body& body) {
  const auto own = halves.of_ring(halves.ranks.rank()), theirs = halves.of_ring(source);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const TokenRange queries = halves.tokens(own[i]), keys = halves.tokens(theirs[j]);
      for (const AttentionBlock& block : blocks_between(queries, keys, b, call.seen)) {
        body(BlockView{block, i, queries.begin, j, keys.begin, call.heads, call.kv_heads});
      }
    }
  }
}

struct RingOutput {
  at::Tensor y_2bsf, log_2bsh;
};

void merge_(RingOutput& all, const BlockView& block, const BlockOutput& part) {
  const at::Tensor merged_log = block.log(all.log_2bsh), merged = block.queries(all.y_2bsf);
  const at::Tensor sum = at::logaddexp(merged_log, part.log);
  merged.mul_(merged_log.sub(sum).exp_().unsqueeze(-1)).add_(part.y.mul(part.log.sub(sum).exp_().unsqueeze(-1)));
  merged_log.copy_(sum);
}

std::vector<int64_t> of_all_ranks(const at::Tensor& x, const RingCall& call) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.insert(sizes.begin(), call.ranks->size());
  return sizes;
}

// Calls `meet` with the keys and values of each rank in turn.
template <class Meet>
void for_each_rank(const at::Tensor& kv_2bsf, const RingCall& call, const Halves& halves, const Meet& meet) {
  const int n = call.ranks->size(), own = call.ranks->rank();
  if (call.keys == RingKeys::Gathered) {
    const at::Tensor all = at::empty(of_all_ranks(kv_2bsf, call), kv_2bsf.options());
    call.ranks->all_gather(all, kv_2bsf).order_before(call.ranks->queue());
    for (int rank = 0; rank < n; ++rank) meet(rank, all[rank]);
    return;
  }
  at::Tensor kv = kv_2bsf;
  for (int step = 0; step < n; ++step) {
    std::optional<Passing> passing;
    if (step + 1 < n) passing.emplace(*call.ranks, kv, halves.keys_tag());
    meet((own + n - step) % n, kv);
    if (passing) kv = passing->received();
  }
}

// Sums the gradients of each rank's keys and values over all ranks and returns the sums to that rank. begin() and end()
// are called around each rank that for_each_rank() meets, in that order; then received().
class KeyGradients {
 public:
  KeyGradients(const at::Tensor& kv_2bsf, const RingCall& call, const Halves& halves)
      : call_(call),
        tag_(halves.gradients_tag()),
        sizes_(kv_2bsf.sizes().vec()),
        options_(widened(kv_2bsf.narrow(3, 0, 0)).options()) {
    if (call.keys == RingKeys::Gathered) all_ = at::zeros(of_all_ranks(kv_2bsf, call), options_);
  }
  // Returns zeros, to which the caller adds the gradients of the keys of `rank`. Meanwhile the sums of the rank before
  // are sent to the next rank of the ring.
  at::Tensor begin(int rank) {
    if (all_.defined()) return all_[rank];
    if (sums_.defined()) passing_.emplace(*call_.ranks, sums_, tag_);
    return own_ = at::zeros(sizes_, options_);
  }
  void end() {
    if (all_.defined()) return;
    sums_ = passing_ ? own_.add_(passing_->received()) : own_;
    passing_.reset();
  }
  at::Tensor received() {
    if (!all_.defined()) return Passing(*call_.ranks, sums_, tag_).received();
    const at::Tensor own = at::empty(sizes_, options_);
    call_.ranks->reduce_scatter(own, all_, ReduceOp::Sum).order_before(call_.ranks->queue());
    return own;
  }

 private:
  const RingCall& call_;
  const int tag_;
  const std::vector<int64_t> sizes_;
  const at::TensorOptions options_;
  at::Tensor all_, own_, sums_;  // sums_: so far, of the keys that go around
  std::optional<Passing> passing_;
};

RingOutput ring_forward(const RingTensors& x, const RingCall& call, const Halves& halves) {
  const at::Tensor q_2bsf = widened(x.q_2bsf);
  const int64_t b = q_2bsf.size(1);
  RingOutput all{
      at::zeros(q_2bsf.sizes(), q_2bsf.options()),
      at::full({2, b, halves.length, call.heads}, -std::numeric_limits<double>::infinity(), q_2bsf.options())};
  for_each_rank(x.kv_2bsf, call, halves, [&](int rank, const at::Tensor& narrow_kv) {
    const at::Tensor kv = widened(narrow_kv);
    for_each_block(call, halves, b, rank, [&](const BlockView& block) {
      merge_(all, block, attend_block(block.tensors(q_2bsf, kv), block.at, call.scores));
    });
  });
  all.y_2bsf = all.y_2bsf.to(x.q_2bsf.scalar_type());
  return all;
}

// Returns the gradients in the type of computation.
RingTensors ring_backward(const RingTensors& x, const RingOutput& out, const at::Tensor& dy_2bsf, const RingCall& call,
                          const Halves& halves) {
  const at::Tensor q_2bsf = widened(x.q_2bsf), y_2bsf = widened(out.y_2bsf), dq_2bsf = at::zeros_like(q_2bsf);
  KeyGradients sums(x.kv_2bsf, call, halves);
  for_each_rank(x.kv_2bsf, call, halves, [&](int rank, const at::Tensor& narrow_kv) {
    const at::Tensor kv = widened(narrow_kv), dkv = sums.begin(rank);
    for_each_block(call, halves, q_2bsf.size(1), rank, [&](const BlockView& block) {
      const BlockOutput output{block.queries(y_2bsf), block.log(out.log_2bsh)};
      const BlockTensors parts =
          attend_block_backward(block.tensors(q_2bsf, kv), output, block.queries(dy_2bsf), block.at, call.scores);
      const BlockTensors sums_of_block = block.tensors(dq_2bsf, dkv);
      sums_of_block.q.add_(parts.q);
      sums_of_block.k.add_(parts.k);
      sums_of_block.v.add_(parts.v);
    });
    sums.end();
  });
  return {dq_2bsf, sums.received()};
}

// Tensors that backward needs no more are freed on the way, so that their memory is not needed twice.
struct Ring : Function<Ring> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_btf, const RingCall& call) {
    const Halves halves(*call.ranks, qkv_btf.size(1));
    const RingTensors x = ring_tensors(qkv_btf.detach(), call, halves);
    const RingOutput out = ring_forward(x, call, halves);
    ctx->save_for_backward({x.q_2bsf, x.kv_2bsf, out.y_2bsf, out.log_2bsh});
    keep(ctx, call);
    const at::Tensor y_btf = at::empty({qkv_btf.size(0), qkv_btf.size(1), x.q_2bsf.size(3)}, qkv_btf.options());
    from_ring(out.y_2bsf, halves, y_btf);
    return y_btf;
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& call = kept<RingCall>(ctx);
    const comm::CallName calls(call.name);
    const at::Tensor dy_btf = std::exchange(grads[0], {});
    const Halves halves(*call.ranks, dy_btf.size(1));
    RingTensors sums = gradients(ctx->get_saved_variables(), dy_btf, call, halves);
    const int64_t queries = sums.q_2bsf.size(3), keys = sums.kv_2bsf.size(3);
    const at::Tensor dx_btf = at::empty({dy_btf.size(0), dy_btf.size(1), queries + keys}, dy_btf.options());
    from_ring(std::exchange(sums.q_2bsf, {}).to(dy_btf.scalar_type()), halves, dx_btf.narrow(2, 0, queries));
    from_ring(std::exchange(sums.kv_2bsf, {}).to(dy_btf.scalar_type()), halves, dx_btf.narrow(2, queries, keys));
    return {dx_btf, {}};
  }

  static RingTensors gradients(const variable_list& saved, const at::Tensor& dy_btf, const RingCall& call,
                               const Halves& halves) {
    const at::Tensor dy_2bsf = widened(to_ring(dy_btf, halves));
    return ring_backward({saved[0], saved[1]}, {saved[2], saved[3]}, dy_2bsf, call, halves);
  }
};

}  // namespace

at::Tensor ring_attention(const at::Tensor& qkv_btf, const RingCall& call) { return Ring::apply(qkv_btf, call); }

}  // namespace braid::nn
