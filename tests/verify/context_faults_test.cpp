// Faults of context ranks are named: step, phase, op, tensor and ranks.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <utility>

#include "tests/verify/faulty_run.h"

namespace braid::verify::context_faults_test {
namespace {

const MeshSpec kRing{.context = 2}, kRingOfFour{.context = 4},
    kAllGather{.context = 2, .context_parallel = ContextParallel::AllGather},
    kUlysses{.context = 2, .context_parallel = ContextParallel::Ulysses};
constexpr const char* kKeys = "ring of keys";
constexpr const char* kHeads = "exchange of heads";
constexpr const char* kFirstAttention = "step 1 forward | blocks.0 attention | output bt(kmd) | ";

// The batches of a forward in a ring of two are queries to the ring, keys to the ring, keys passed on, outputs back.
// Those of a backward are gradients to the ring, keys passed on, gradients passed on, and home, and both back. Backward
// begins with the last of the two layers.
enum BatchOfRing { kQueriesIn, kKeysIn, kKeysOn, kOutputsBack, kBatchesOfForward };
constexpr int kGradientsHome = 2 * kBatchesOfForward + 3;

bool sends(const P2p& transfer) { return transfer.kind == P2p::Kind::Send; }

// Changes batch `number` of the groups of this name on all ranks.
Around batched(const char* group, int number, const std::function<void(std::vector<P2p>& transfers)>& change) {
  return calls([=](CallChanges& changes, int) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      if (call.is(group, number)) change(transfers);
      return call.inner.batch(transfers);
    };
  });
}

// Changes what one rank sends in that batch.
Around sent_in(const char* group, int number, int sender, const std::function<at::Tensor(const at::Tensor&)>& change) {
  return calls([=](CallChanges& changes, int rank) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      for (P2p& transfer : transfers) {
        if (rank == sender && call.is(group, number) && sends(transfer)) transfer.tensor = change(transfer.tensor);
      }
      return call.inner.batch(transfers);
    };
  });
}

// The rank keeps what it has in place of what it receives.
void leave_out(std::vector<P2p>& transfers) {
  for (const P2p& received : transfers) {
    if (sends(received)) continue;
    const auto same = [&](const P2p& sent) { return sends(sent) && sent.tensor.sizes() == received.tensor.sizes(); };
    received.tensor.copy_(std::ranges::find_if(transfers, same)->tensor);
  }
  transfers.clear();
}

at::Tensor doubled(const at::Tensor& message) { return message.mul(2); }

TEST(PlantedContextFaults, AStepOfTheRingLeftOut) {
  EXPECT_EQ(found(on(kRing), batched(kKeys, kKeysOn, leave_out)), cat(kFirstAttention, "0 1"));
  EXPECT_EQ(found(on(kRing), batched(kKeys, kBatchesOfForward + kKeysOn, leave_out)),
            "step 1 forward | blocks.1 attention | output bt(kmd) | 0 1");
}

// Keys of another scale give other scores, and so another logarithm of their sum to the merge. Rank 0 computes the last
// half of the tokens, which rank 1 has.
TEST(PlantedContextFaults, KeysOfAnotherScaleInTheMerge) {
  EXPECT_EQ(found(on(kRing), sent_in(kKeys, kKeysOn, 1, doubled)), cat(kFirstAttention, "1"));
  const auto scaled = calls([](CallChanges& changes, int) {
    changes.all_gather = [](const Call& call, const at::Tensor& out, const at::Tensor& in) {
      Work work = call.inner.all_gather(out, in);
      if (!call.is(kKeys, 0)) return work;
      work.wait_host();
      out[1].mul_(2);
      return Work();
    };
  });
  EXPECT_EQ(found(on(kAllGather), scaled), cat(kFirstAttention, "0 1"));
}

// Rank 1 sends two halves of its tokens to two ranks.
TEST(PlantedContextFaults, HalvesMisplacedInTheRing) {
  RunSpec run = on(kRingOfFour);
  const auto swapped = calls([](CallChanges& changes, int rank) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      if (rank == 1 && call.is(kKeys, kQueriesIn)) std::swap(transfers.at(0).tensor, transfers.at(1).tensor);
      return call.inner.batch(transfers);
    };
  });
  EXPECT_EQ(found(run, swapped), cat(kFirstAttention, "1"));
  const auto swapped_keys = calls([](CallChanges& changes, int rank) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      if (rank == 1 && call.is(kKeys, kKeysIn)) std::swap(transfers.at(0).tensor, transfers.at(1).tensor);
      return call.inner.batch(transfers);
    };
  });
  EXPECT_EQ(found(run, swapped_keys), cat(kFirstAttention, "1"));
}

TEST(PlantedContextFaults, HeadsOfAnotherRank) {
  const auto rolled = [](const at::Tensor& message) { return message.roll(4, -1); };
  EXPECT_EQ(found(on(kUlysses), sent_in(kHeads, 0, 1, rolled)), cat(kFirstAttention, "1"));
  EXPECT_EQ(found(on(kUlysses), sent_in(kHeads, 1, 1, rolled)), cat(kFirstAttention, "0"));
}

TEST(PlantedContextFaults, GradientsOfKeysNotReturned) {
  const std::string of_keys =
      "step 1 backward | blocks.1 attention | gradient of blocks.1 bias attention.qkv output "
      "bt[kmd|kd|kd] | 0 1";
  EXPECT_EQ(found(on(kRing), batched(kKeys, kGradientsHome, leave_out)), of_keys);
  const auto own = calls([](CallChanges& changes, int rank) {
    changes.reduce_scatter = [=](const Call& call, const at::Tensor& out, const at::Tensor& in) {
      const at::Tensor before = in[rank].clone();
      Work work = call.inner.reduce_scatter(out, in, ReduceOp::Sum);
      if (!call.is(kKeys, 0)) return work;
      work.wait_host();
      out.copy_(before);
      return Work();
    };
  });
  EXPECT_EQ(found(on(kAllGather), own), of_keys);
}

TEST(PlantedContextFaults, GradientsOfContextRanksNotSummed) {
  EXPECT_EQ(found(on(kRing), all_reduced("replicas", 0, 0)),
            "step 1 gradients | head layer norm ln_f | ln_f.weight | 0 1");
}

// Rank 1 takes its tokens for those of the part before them.
TEST(PlantedContextFaults, PositionsOffByOnePart) {
  const auto before = calls([](CallChanges& changes, int) {
    changes.rank = [](const std::string& group, int rank) { return group == "context" ? 0 : rank; };
  });
  EXPECT_EQ(found(on(kRing), before), "step 1 forward | embedding positions wpe | output btc | 1");
  RunSpec rotary = on(kUlysses);
  rotary.model.family = ModelFamily::Llama;
  EXPECT_EQ(found(rotary, before), "step 1 forward | blocks.0 rotary | output bt[kmd|kd|kd] | 1");
}

// The tokens of a source, each in the place of one `shift` places before it.
struct ShiftedTokens final : data::TokenSource {
  ShiftedTokens(data::Tokens source, int64_t shift) : source(std::move(source)), shift(shift) {}
  int64_t num_tokens() const override { return source->num_tokens(); }
  int64_t num_documents() const override { return source->num_documents(); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) source->read(place(begin + static_cast<int64_t>(i)), out.subspan(i, 1));
  }
  void read_documents(int64_t begin, std::span<int64_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      source->read_documents(place(begin + static_cast<int64_t>(i)), out.subspan(i, 1));
    }
  }
  int64_t place(int64_t token) const { return (token + shift) % num_tokens(); }

  const data::Tokens source;
  const int64_t shift;
};

// Runs a rank that reads the tokens `shift` places further on.
Around reads_shifted(int reader, int64_t shift) {
  return [=](RankInputs rank, const auto& run) {
    data::Corpus corpus = *rank.corpus;
    data::Tokens& source = corpus.train.front().tokens;
    source = std::make_shared<ShiftedTokens>(source, shift);
    if (rank.world->rank() == reader) rank.corpus = &corpus;
    run(rank);
  };
}

TEST(PlantedContextFaults, TokensOrLabelsShiftedByOnePart) {
  RunSpec run = on({.pipe = 2, .context = 2});
  const int64_t part = run.model.context / 2;
  EXPECT_EQ(found(run, reads_shifted(1, part)), "step 1 data | batch | tokens | 1");
  EXPECT_EQ(found(run, reads_shifted(3, part)), "step 1 data | batch | targets | 3");
}

TEST(PlantedContextFaults, AMaskOfDocumentsLost) {
  RunSpec run = on(kRing);
  run.data.attention = AttentionMask::Document;
  const auto causal = inputs([](RankInputs& rank) {
    if (rank.world->rank() == 1) rank.spec.data.attention = AttentionMask::Causal;
  });
  EXPECT_EQ(found(run, causal), "step 1 data | batch | documents | 1");
}

TEST(PlantedContextFaults, ALossOfOneRankCountedTwice) {
  const Output loss(small_run(), 3, model::OpKind::Loss);
  const auto twice = [=](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
    if (loss.is(place)) value = value.add(value.detach());
  };
  EXPECT_EQ(found(on(kRing), values(1, twice)), "step 1 forward | head loss | loss | 0 1");
}

RunSpec masked(const MeshSpec& mesh) {
  RunSpec run = on(mesh);
  run.model.family = ModelFamily::Bert;
  run.model.context = 24;
  return run;
}

// Documents of other lengths have other tokens to predict.
TEST(PlantedContextFaults, PickedTokensOfAnotherPlace) {
  RunSpec run = masked({.pipe = 2, .context = 2});
  run.data.sequences = SequenceCut::Documents;
  RunSpec other = run;
  ++other.train.seed;
  const data::Corpus corpus = synthetic_corpus(other, 2);
  const auto read = inputs([&](RankInputs& rank) {
    if (rank.world->rank() == 3) rank.corpus = &corpus;
  });
  EXPECT_EQ(found(run, read), "step 1 data | batch | picked rows | 3");
}

// Each context rank compares the rows of its own tokens, and together they compare all.
TEST(PlantedContextFaults, ALogitOfAPickedToken) {
  for (const int wrong : {0, 1}) {
    const auto scaled = [](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
      if (place.kind == nn::ValueKind::Logits) value = value.mul(1 + 1e-9);
    };
    EXPECT_EQ(found(masked(kRing), values(wrong, scaled)), cat("step 1 forward | head loss wte | logits | ", wrong));
  }
}

}  // namespace
}  // namespace braid::verify::context_faults_test
