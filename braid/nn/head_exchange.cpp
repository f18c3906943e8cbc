// Both exchanges are one batch of messages, whose sizes differ where heads do not divide.
#include "braid/nn/head_exchange.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <numeric>

#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

using Tensors = std::vector<at::Tensor>;

constexpr int kTag = 0;

// Sends send[r] to each other rank r and returns what all ranks sent to this one, in the given shapes.
Tensors exchanged(const Tensors& send, const std::vector<std::vector<int64_t>>& shapes, Communicator& ranks) {
  Tensors received;
  std::vector<P2p> transfers;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const bool own = rank == ranks.rank();
    received.push_back(own ? send[rank] : at::empty(shapes[rank], send[rank].options()));
    if (own) continue;
    if (send[rank].numel() > 0) transfers.push_back({P2p::Kind::Send, send[rank], rank, kTag});
    if (received[rank].numel() > 0) transfers.push_back({P2p::Kind::Recv, received[rank], rank, kTag});
  }
  ranks.batch(transfers).order_before(ranks.queue());
  return received;
}

int64_t heads_of(const HeadExchange& exchange) {
  return std::accumulate(exchange.heads.begin(), exchange.heads.end(), int64_t{0});
}

// The features of a row that belong to the groups of each rank.
struct GroupFeatures {
  GroupFeatures(const HeadExchange& exchange, int64_t width) : call(exchange), head_width(width) {}

  // Returns the number of a rank's features.
  int64_t width_of(int rank) const { return heads_of(call) / call.groups * call.groups_of(rank) * head_width; }
  // Returns views of a rank's features in x_btf, one for each segment. x_btf has all heads.
  Tensors views(const at::Tensor& x_btf, int rank) const {
    Tensors parts;
    int64_t segment = 0;
    for (const int64_t heads : call.heads) {
      const int64_t of_group = heads / call.groups * head_width;
      parts.push_back(x_btf.narrow(2, segment + call.first_group(rank) * of_group, call.groups_of(rank) * of_group));
      segment += heads * head_width;
    }
    return parts;
  }

  const HeadExchange& call;
  const int64_t head_width;
};

at::Tensor to_heads(const at::Tensor& x_btf, const HeadExchange& exchange) {
  Communicator& ranks = *exchange.ranks;
  const GroupFeatures features(exchange, x_btf.size(2) / heads_of(exchange));
  const int64_t b = x_btf.size(0), t = x_btf.size(1), own = features.width_of(ranks.rank());
  Tensors send;
  for (int rank = 0; rank < ranks.size(); ++rank) send.push_back(at::cat(features.views(x_btf, rank), 2));
  const std::vector<std::vector<int64_t>> shapes(ranks.size(), {b, t, own});
  return at::cat(exchanged(send, shapes, ranks), 1);
}

// `head_width`: a rank without heads cannot see it.
at::Tensor to_tokens(const at::Tensor& x_btf, const HeadExchange& exchange, int64_t head_width) {
  Communicator& ranks = *exchange.ranks;
  const GroupFeatures features(exchange, head_width);
  const int64_t b = x_btf.size(0), t = x_btf.size(1) / ranks.size();
  Tensors send;
  std::vector<std::vector<int64_t>> shapes;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    send.push_back(x_btf.narrow(1, rank * t, t).contiguous());
    shapes.push_back({b, t, features.width_of(rank)});
  }
  const Tensors received = exchanged(send, shapes, ranks);
  at::Tensor all_btf = at::empty({b, t, heads_of(exchange) * head_width}, x_btf.options());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    int64_t begin = 0;
    for (const at::Tensor& part : features.views(all_btf, rank)) {
      part.copy_(received[rank].narrow(2, begin, part.size(2)));
      begin += part.size(2);
    }
  }
  return all_btf;
}

struct KeptExchange {
  HeadExchange exchange;
  int64_t head_width;
};

struct TokensToHeads : Function<TokensToHeads> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btf, const HeadExchange& exchange) {
    keep(ctx, KeptExchange{exchange, x_btf.size(2) / heads_of(exchange)});
    return to_heads(x_btf, exchange);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [exchange, head_width] = kept<KeptExchange>(ctx);
    const comm::CallName calls(exchange.name);
    return {to_tokens(grads[0], exchange, head_width), {}};
  }
};

struct HeadsToTokens : Function<HeadsToTokens> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btf, const HeadExchange& exchange,
                            int64_t head_width) {
    keep(ctx, exchange);
    return to_tokens(x_btf, exchange, head_width);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& exchange = kept<HeadExchange>(ctx);
    const comm::CallName calls(exchange.name);
    return {to_heads(grads[0], exchange), {}, {}};
  }
};

}  // namespace

at::Tensor tokens_to_heads(const at::Tensor& x_btf, const HeadExchange& exchange) {
  return TokensToHeads::apply(x_btf, exchange);
}

at::Tensor heads_to_tokens(const at::Tensor& x_btf, const HeadExchange& exchange, int64_t head_width) {
  return HeadsToTokens::apply(x_btf, exchange, head_width);
}

}  // namespace braid::nn
