// Attention of sequences whose tokens ranks share, against attention on one rank, and what the ranks send for it.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/nn/attention.h"
#include "tests/support/counted_collectives.h"
#include "tests/support/dice.h"

namespace braid::nn::context_attention_test {
namespace {

constexpr int64_t kSequences = 2, kFeatures = 4;

struct Case {
  int64_t heads = 4, kv_heads = 4;
  int exchange = 1, ring = 1;  // ranks of each
  int64_t tokens = 24;         // of all ranks
  RingKeys keys = RingKeys::GoAround;
  int64_t window = 0;
  model::Sees sees = model::Sees::Earlier;
  bool documents = false;
  double cap = 0;
  at::ScalarType type = at::kDouble;

  int ranks() const { return exchange * ring; }
  int64_t inputs() const { return (heads + 2 * kv_heads) * kFeatures; }
  int64_t outputs() const { return heads * kFeatures; }
};

std::string text(const Case& c) {
  return cat(c.heads, " heads, ", c.kv_heads, " key heads, exchange ", c.exchange, ", ring ", c.ring, ", window ",
             c.window, ", cap ", c.cap, c.documents ? ", documents" : "",
             c.keys == RingKeys::Gathered ? ", gathered" : "");
}

at::Tensor filled(int64_t features, int64_t tokens, double step) {
  return at::arange(kSequences * tokens * features, at::kDouble).mul_(step).sin_().view({kSequences, tokens, features});
}

CoreCall call_of(const Case& c) {
  CoreCall call{c.heads, c.kv_heads};
  call.window = c.window, call.sees = c.sees, call.cap = c.cap;
  // The second sequence's documents end within parts of ranks and at their borders.
  if (c.documents) {
    const at::Tensor places = at::arange(c.tokens, at::kLong);
    call.documents_bt = at::stack({places.div(5, "floor"), places.div(c.tokens / c.ranks(), "floor")});
  }
  return call;
}

struct Result {
  at::Tensor y_btf, dx_btf;
};

Result computed(const at::Tensor& x_btf, const at::Tensor& dy_btf, const CoreCall& call) {
  // A leaf of its own: the core may use the memory of its input.
  const at::Tensor leaf = x_btf.clone().requires_grad_();
  const at::Tensor y_btf = attention_core(leaf, call).value;
  y_btf.backward(dy_btf);
  return {y_btf.detach(), leaf.grad()};
}

// The elements that ranks send altogether, point to point, and those that each gathers and scatters.
struct Traffic {
  int64_t exchanged = 0, passed = 0, gathered = 0, scattered = 0;
};

struct Shared {
  Result result;
  Traffic traffic;
};

Shared computed_on_ranks(const Case& c, const at::Tensor& x_btf, const at::Tensor& dy_btf) {
  std::vector<Result> parts(c.ranks());
  Traffic traffic;
  std::mutex lock;
  run_ranks(c.ranks(), [&](Communicator& world) {
    const int rank = world.rank();
    const auto exchange = world.split(rank / c.exchange, rank, "exchange"),
               ring = world.split(rank % c.exchange, rank, "ring");
    CountedCollectives counted_exchange(*exchange), counted_ring(*ring);
    CoreCall call = call_of(c);
    call.context = {&world, c.exchange > 1 ? &counted_exchange : nullptr, c.ring > 1 ? &counted_ring : nullptr, c.keys};
    const int64_t t = c.tokens / c.ranks();
    parts[rank] = computed(x_btf.narrow(1, rank * t, t), dy_btf.narrow(1, rank * t, t), call);
    const std::scoped_lock hold(lock);
    traffic.exchanged += counted_exchange.sent_elements();
    traffic.passed += counted_ring.sent_elements();
    traffic.gathered = counted_ring.gathered_elements();
    traffic.scattered = counted_ring.scattered_elements();
  });
  std::vector<at::Tensor> y, dx;
  for (const Result& part : parts) y.push_back(part.y_btf), dx.push_back(part.dx_btf);
  return {{at::cat(y, 1), at::cat(dx, 1)}, traffic};
}

// Returns the elements that ranks send altogether to move the halves of `features` of all tokens once.
int64_t moved(const Case& c, int64_t features) {
  int64_t halves = 0;
  for (int half = 0; half < 2 * c.ring; ++half) halves += std::min(half, 2 * c.ring - 1 - half) != half / 2 ? 1 : 0;
  return kSequences * c.tokens * features * halves / (2 * c.ring);
}

// Each rank sends to each other one its tokens of that one's heads, and gets them back with outputs.
int64_t exchanged(const Case& c) {
  const int64_t of_groups = (c.inputs() + c.outputs()) / c.kv_heads, of_rank = kSequences * c.tokens / c.ranks();
  int64_t elements = 0;
  for (int to = 0; to < c.exchange; ++to) {
    const int64_t groups = c.kv_heads * (to + 1) / c.exchange - c.kv_heads * to / c.exchange;
    elements += (c.exchange - 1) * of_rank * groups * of_groups;
  }
  return elements * c.ring * 2;  // forward and backward
}

void expect_counted(const Case& c, const Traffic& traffic) {
  EXPECT_EQ(traffic.exchanged, exchanged(c));
  if (c.ring == 1) return;
  const int64_t kv = kSequences * c.tokens * (c.inputs() - c.outputs());  // of all ranks
  const int64_t places = 2 * (moved(c, c.inputs()) + moved(c, c.outputs()));
  if (c.keys == RingKeys::GoAround) {
    EXPECT_EQ(traffic.passed, places + (c.ring - 1) * kv + (2 * c.ring - 1) * kv);
  } else {
    EXPECT_EQ(traffic.passed, places);
    EXPECT_EQ(traffic.gathered, 2 * kv);
    EXPECT_EQ(traffic.scattered, kv);
  }
}

void expect_attention_of_one_rank(const Case& c) {
  SCOPED_TRACE(text(c));
  const at::Tensor x_btf = filled(c.inputs(), c.tokens, 0.37).to(c.type),
                   dy_btf = filled(c.outputs(), c.tokens, 0.73).to(c.type);
  const Result want = computed(x_btf, dy_btf, call_of(c));
  const auto [got, traffic] = computed_on_ranks(c, x_btf, dy_btf);
  const double bound = c.type == at::kDouble ? 1e-14 : 0.02;
  EXPECT_LT(got.y_btf.sub(want.y_btf).abs().max().item<double>(), bound);
  EXPECT_LT(got.dx_btf.sub(want.dx_btf).abs().max().item<double>(), 4 * bound);
  if (c.ring == 1 || c.exchange == 1) expect_counted(c, traffic);
}

TEST(ContextAttention, OfARing) {
  for (const int ring : {2, 3, 4}) {
    for (const RingKeys keys : {RingKeys::GoAround, RingKeys::Gathered}) {
      for (const int64_t window : {0, 1, 5, 13}) {
        expect_attention_of_one_rank({.kv_heads = 2, .ring = ring, .keys = keys, .window = window});
        expect_attention_of_one_rank({.ring = ring, .keys = keys, .window = window, .documents = true});
        expect_attention_of_one_rank({.kv_heads = 2, .ring = ring, .keys = keys, .window = window, .cap = 0.5});
        expect_attention_of_one_rank({.ring = ring, .keys = keys, .window = window, .documents = true, .cap = 0.5});
      }
      expect_attention_of_one_rank({.ring = ring, .keys = keys, .sees = model::Sees::All});
      expect_attention_of_one_rank({.ring = ring, .keys = keys, .sees = model::Sees::All, .documents = true});
    }
  }
}

TEST(ContextAttention, OfExchangedHeads) {
  for (const int exchange : {2, 3, 4}) {
    for (const int64_t heads : {1, 3, 4, 7}) {
      expect_attention_of_one_rank({.heads = heads, .kv_heads = heads, .exchange = exchange, .documents = true});
      expect_attention_of_one_rank({.heads = 2 * heads, .kv_heads = heads, .exchange = exchange, .window = 7});
    }
  }
}

TEST(ContextAttention, OfRingsOfExchanges) {
  for (const int64_t heads : {1, 2, 3}) {
    expect_attention_of_one_rank({.heads = 3 * heads, .kv_heads = heads, .exchange = 2, .ring = 2, .documents = true});
    expect_attention_of_one_rank({.heads = heads, .kv_heads = heads, .exchange = 3, .ring = 2, .window = 9});
  }
}

TEST(ContextAttention, OfNarrowTypes) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    expect_attention_of_one_rank({.ring = 2, .documents = true, .type = type});
    expect_attention_of_one_rank({.exchange = 2, .type = type});
  }
}

// Parts of odd lengths, of one tile of the kernel and of several.
TEST(ContextAttention, OfDrawnShapesWithACap) {
  Dice dice(3);
  for (int i = 0; i < 40; ++i) {
    const int ring = dice.between(2, 4), kv_heads = dice.between(1, 3), context = 2 * ring * dice.between(1, 90);
    const int window = dice.between(0, 2) == 0 ? 0 : dice.between(1, context);
    expect_attention_of_one_rank({.heads = kv_heads * dice.between(1, 3),
                                  .kv_heads = kv_heads,
                                  .ring = ring,
                                  .tokens = context,
                                  .keys = dice.between(0, 1) == 0 ? RingKeys::GoAround : RingKeys::Gathered,
                                  .window = window,
                                  .documents = dice.between(0, 1) == 0,
                                  .cap = dice.between(0, 1) == 0 ? 0.5 : 64});
  }
}

// Masks that are lost show: attention by document differs from attention without.
TEST(ContextAttention, DocumentsMatter) {
  Case c{.ring = 2, .documents = true};
  const at::Tensor x_btf = filled(c.inputs(), c.tokens, 0.37), dy_btf = filled(c.outputs(), c.tokens, 0.73);
  const Result with = computed_on_ranks(c, x_btf, dy_btf).result;
  c.documents = false;
  EXPECT_GT(with.y_btf.sub(computed_on_ranks(c, x_btf, dy_btf).result.y_btf).abs().max().item<double>(), 0.1);
}

}  // namespace
}  // namespace braid::nn::context_attention_test
