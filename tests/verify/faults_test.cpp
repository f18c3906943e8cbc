// Faults that are planted in one rank or one group are named: step, phase, op, tensor and ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "braid/model/families.h"
#include "braid/verify/verify_layout.h"
#include "tests/verify/changed_communicator.h"
#include "tests/verify/small_run.h"

namespace braid::verify::faults_test {
namespace {

using Call = CallChanges::Call;
using Around = std::function<void(const RankInputs&, const std::function<void(const RankInputs&)>&)>;

// Returns the first divergence as one line, "step 1 forward | op | tensor | 0 1".
std::string found(const RunSpec& run, const Around& around) {
  VerifyOptions options;
  options.around = around;
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, 2), options);
  if (!verdict.first_divergence) return "equal";
  const Divergence& first = *verdict.first_divergence;
  std::string text = cat("step ", first.step, " ", word(first.phase), " | ", first.op, " | ", first.tensor, " |");
  for (const int rank : first.ranks) text += cat(" ", rank);
  return text;
}

// Runs ranks whose calls are changed as `set` says.
Around calls(const std::function<void(CallChanges& changes, int rank)>& set) {
  return [set](RankInputs rank, const auto& run) {
    CallChanges changes;
    set(changes, rank.world->rank());
    ChangedCommunicator world(*rank.world, changes);
    rank.world = &world;
    run(rank);
  };
}

// Runs ranks whose inputs are changed.
Around inputs(const std::function<void(RankInputs& rank)>& change) {
  return [change](RankInputs rank, const auto& run) {
    change(rank);
    run(rank);
  };
}

// Changes values before the comparison sees them.
struct ChangedValues final : nn::ValueObserver {
  using Change = std::function<void(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value)>;
  ChangedValues(nn::ValueObserver& next, Change change) : next(next), change(std::move(change)) {}
  void made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) override {
    change(place, microbatch, value);
    next.made(place, microbatch, value);
  }
  nn::ValueObserver& next;
  Change change;
};

// Changes the values of one rank; kAllRanks: of all.
constexpr int kAllRanks = -1;
Around values(int rank, const ChangedValues::Change& change) {
  return [=](RankInputs each, const auto& run) {
    std::unique_ptr<ChangedValues> changed;
    if (rank == kAllRanks || each.world->rank() == rank) {
      each.observer = [&](nn::ValueObserver& next) -> nn::ValueObserver& {
        changed = std::make_unique<ChangedValues>(next, change);
        return *changed;
      };
    }
    run(each);
  };
}

RunSpec on(const MeshSpec& mesh) {
  RunSpec run = small_run();
  run.mesh = mesh;
  return run;
}

// The output of the first op of this kind in a block.
struct Output {
  Output(const RunSpec& run, int block, model::OpKind kind) : block(block) {
    const model::ModelGraph graph = model::graph_of(run.model);
    value = std::ranges::find(graph.block(static_cast<size_t>(block)).ops, kind, &model::Op::kind)->out;
  }
  bool is(const nn::MadeValue& place) const {
    return place.kind == nn::ValueKind::Output && place.block == block && place.value == value;
  }
  int block, value = 0;
};

// Flips a bit in the upper half of the fraction.
void flip_a_bit(const at::Tensor& numbers) { static_cast<unsigned char*>(numbers.mutable_data_ptr())[5] ^= 1; }

// Makes call `number` of all-reduce in groups of this name `times` times on all ranks.
Around all_reduced(const std::string& group, int number, int times) {
  return calls([=](CallChanges& changes, int) {
    changes.all_reduce = [=](const Call& call, const at::Tensor& tensor, ReduceOp op) {
      if (!call.is(group, number)) return call.inner.all_reduce(tensor, op);
      for (int time = 0; time < times; ++time) call.inner.all_reduce(tensor, op).wait_host();
      return Work();
    };
  });
}

// Changes the messages that a rank sends.
Around sent_by(int sender, const std::function<at::Tensor(const at::Tensor&)>& change) {
  return calls([=](CallChanges& changes, int rank) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      for (P2p& transfer : transfers) {
        if (rank == sender && transfer.kind == P2p::Kind::Send) transfer.tensor = change(transfer.tensor);
      }
      return call.inner.batch(transfers);
    };
  });
}

// A block that reads another microbatch on tensor rank 1.
class MisledBlock final : public nn::Block {
 public:
  using Change = void (*)(nn::Microbatch& microbatch);
  MisledBlock(std::unique_ptr<nn::Block> inner, Change change) : inner_(std::move(inner)), change_(change) {}
  at::Tensor forward(const at::Tensor& x_btc, const nn::Microbatch& microbatch) override {
    nn::Microbatch changed = microbatch;
    change_(changed);
    return inner_->forward(x_btc, changed);
  }

 private:
  std::unique_ptr<nn::Block> inner_;
  Change change_;
};

void take_another_key(nn::Microbatch& microbatch) { ++microbatch.dropout_key; }
void shift_labels(nn::Microbatch& microbatch) { microbatch.targets_bt = microbatch.targets_bt.roll(1, 1); }

template <int block, MisledBlock::Change change>
std::unique_ptr<nn::Block> misled_block(const ModelSpec& spec, nn::ModelPiece piece, param::ParamStore& store,
                                        const nn::RankContext& rank) {
  auto inner = nn::model_block(spec, piece, store, rank);
  if (piece.block != block || rank.tensor.rank() != 1) return inner;
  return std::make_unique<MisledBlock>(std::move(inner), change);
}

TEST(PlantedFaults, AnAllReduceOfTensorRanksLeftOut) {
  const RunSpec run = on({.tensor = 2});
  EXPECT_EQ(found(run, all_reduced("tensor", 3, 0)),
            "step 1 forward | blocks.1 linear attention.projection | output btc | 0 1");
  EXPECT_EQ(found(run, all_reduced("tensor", 6, 0)), "step 1 forward | head loss wte | loss of a microbatch | 0 1");
  EXPECT_EQ(found(run, all_reduced("tensor", 11, 0)),
            "step 1 backward | blocks.0 linear attention.qkv | gradient of blocks.0 layer norm ln_1 output btc | 0 1");
}

TEST(PlantedFaults, AnAllReduceLeftOutInBFloat16) {
  RunSpec run = on({.tensor = 2});
  run.train.dtype = DType::BFloat16;
  EXPECT_EQ(found(run, all_reduced("tensor", 3, 0)),
            "step 1 forward | blocks.1 linear attention.projection | output btc | 0 1");
}

TEST(PlantedFaults, AFaultOfABillionth) {
  const Output normed(small_run(), 2, model::OpKind::LayerNorm);
  const auto scaled = [=](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
    if (normed.is(place)) value = value.mul(1 + 1e-9);
  };
  EXPECT_EQ(found(on({.data = 2}), values(1, scaled)), "step 1 forward | blocks.1 layer norm ln_1 | output btc | 1");
}

TEST(PlantedFaults, AnAllReduceMadeTwice) {
  EXPECT_EQ(found(on({.tensor = 2}), all_reduced("tensor", 2, 2)),
            "step 1 forward | blocks.0 linear mlp.down | output btc | 0 1");
}

TEST(PlantedFaults, AGradientBucketScaledOnOneRank) {
  const auto scaled = calls([](CallChanges& changes, int rank) {
    changes.all_reduce = [=](const Call& call, const at::Tensor& tensor, ReduceOp op) {
      Work work = call.inner.all_reduce(tensor, op);
      if (rank != 1 || !call.is("replicas", 0)) return work;
      work.wait_host();
      tensor.mul_(0.5);
      return Work();
    };
  });
  EXPECT_EQ(found(on({.data = 2}), scaled), "step 1 gradients | head layer norm ln_f | ln_f.weight | 1");
}

TEST(PlantedFaults, ANormCountedTwice) {
  const auto twice = calls([](CallChanges& changes, int) {
    changes.all_gather = [](const Call& call, const at::Tensor& out, const at::Tensor& in) {
      Work work = call.inner.all_gather(out, in);
      if (call.group != "pipe x context x expert x tensor") return work;
      work.wait_host();
      out[0].add_(out[1]);
      return Work();
    };
  });
  EXPECT_EQ(found(on({.tensor = 2}), twice), "step 1 gradient norm | gradient norm | gradient norm | 0 1");
}

TEST(PlantedFaults, AGatherOfAStaleShard) {
  const auto stale = calls([](CallChanges& changes, int rank) {
    const auto first = std::make_shared<std::map<const void*, at::Tensor>>();  // by the memory of the own shard
    changes.all_gather = [=](const Call& call, const at::Tensor& out, const at::Tensor& in) {
      Work work = call.inner.all_gather(out, in);
      if (rank != 1 || call.group != "shards") return work;
      work.wait_host();
      const auto [kept, is_new] = first->try_emplace(in.const_data_ptr(), out.clone());
      // The shard of rank 0, past autograd, which counts the writes to a saved tensor.
      if (!is_new) std::memcpy(out.mutable_data_ptr(), kept->second.const_data_ptr(), in.nbytes());
      return Work();
    };
  });
  RunSpec run = on({.data = 2});
  run.sync.zero = 3;
  EXPECT_EQ(found(run, stale), "step 2 forward | embedding lookup wte | output btc | 1");
  run.sync.zero = 1;
  EXPECT_EQ(found(run, stale), "step 2 weights | embedding lookup wte | wte.weight | 1");
}

TEST(PlantedFaults, AScatterOfTheWrongSum) {
  const auto own = calls([](CallChanges& changes, int rank) {
    changes.reduce_scatter = [=](const Call& call, const at::Tensor& out, const at::Tensor& in) {
      const at::Tensor before = in.flatten().narrow(0, rank * out.numel(), out.numel()).view(out.sizes()).clone();
      Work work = call.inner.reduce_scatter(out, in, ReduceOp::Sum);
      if (rank != 0 || call.number != 0) return work;
      work.wait_host();
      out.copy_(before);
      return Work();
    };
  });
  RunSpec run = on({.data = 2});
  run.sync.zero = 2;
  EXPECT_EQ(found(run, own), "step 1 gradients | head layer norm ln_f | ln_f.weight | 0");
}

TEST(PlantedFaults, ATiedGradientNotSummed) {
  EXPECT_EQ(found(on({.pipe = 2}), all_reduced("tied", 0, 0)),
            "step 1 gradients | embedding lookup wte | wte.weight | 0 1");
}

TEST(PlantedFaults, ANormOfSplitTokensNotSummed) {
  EXPECT_EQ(found(on({.tensor = 2, .sequence_parallel = true}), all_reduced("2 copies", 0, 0)),
            "step 1 gradients | head layer norm ln_f | ln_f.weight | 0 1");
}

TEST(PlantedFaults, AMessageOfAnotherMicrobatch) {
  at::Tensor last;
  const auto late = sent_by(0, [&](const at::Tensor& message) {
    const at::Tensor before = std::exchange(last, message.clone());
    return before.defined() ? before : message;
  });
  EXPECT_EQ(found(on({.pipe = 2}), late), "step 1 forward | message into blocks.1 | input btc | 1");
}

TEST(PlantedFaults, ABitOfAMessageFlipped) {
  const auto flipped = [](const at::Tensor& message) {
    at::Tensor other = message.clone();
    flip_a_bit(other);
    return other;
  };
  EXPECT_EQ(found(on({.pipe = 2}), sent_by(0, flipped)), "step 1 forward | message into blocks.1 | input btc | 1");
  EXPECT_EQ(found(on({.pipe = 2}), sent_by(1, flipped)),
            "step 1 backward | gradient message into blocks.0 | gradient of blocks.0 residual 2 output btc | 0");
}

TEST(PlantedFaults, ADropoutMaskOfOneRank) {
  RunSpec run = on({.tensor = 2});
  run.model.dropout = 0.3;
  const Output dropped(run, 0, model::OpKind::Dropout);
  const auto rolled = [=](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
    if (dropped.is(place)) value = value.roll(1, 1);
  };
  EXPECT_EQ(found(run, values(1, rolled)), "step 1 forward | embedding dropout | output btc | 1");
}

TEST(PlantedFaults, ADropoutKeyOfOneRank) {
  RunSpec run = on({.tensor = 2});
  run.model.dropout = 0.3;
  const auto other = inputs([](RankInputs& rank) { rank.maker.block = misled_block<2, take_another_key>; });
  EXPECT_EQ(found(run, other), "step 1 data | batch | dropout key | 1");
}

TEST(PlantedFaults, ARecomputationWithAnotherMask) {
  RunSpec run = on({.data = 2});
  run.model.dropout = 0.3;
  run.memory.recompute = "full";
  const Output added(run, 2, model::OpKind::Residual);
  std::map<uint64_t, int> passes;
  const auto rolled = [&](const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) {
    if (added.is(place) && passes[microbatch.dropout_key]++ > 0) value = value.roll(1, 1);
  };
  EXPECT_EQ(found(run, values(1, rolled)), "step 1 recompute | blocks.1 residual 1 | output btc | 1");
}

TEST(PlantedFaults, LabelsShiftedByOne) {
  const auto shifted = inputs([](RankInputs& rank) { rank.maker.block = misled_block<3, shift_labels>; });
  EXPECT_EQ(found(on({.tensor = 2}), shifted), "step 1 data | batch | targets | 1");
}

TEST(PlantedFaults, SamplesOfAnotherCorpus) {
  RunSpec other = small_run();
  ++other.train.seed;
  const data::Corpus corpus = synthetic_corpus(other, 2);
  const auto read = inputs([&](RankInputs& rank) {
    if (rank.world->rank() == 1) rank.corpus = &corpus;
  });
  EXPECT_EQ(found(on({.data = 2}), read), "step 1 data | batch | tokens | 1");
}

TEST(PlantedFaults, ADocumentMaskLost) {
  RunSpec run = on({.tensor = 2});
  run.data.attention = AttentionMask::Document;
  const auto causal = inputs([](RankInputs& rank) {
    if (rank.world->rank() == 1) rank.spec.data.attention = AttentionMask::Causal;
  });
  EXPECT_EQ(found(run, causal), "step 1 data | batch | documents | 1");
}

TEST(PlantedFaults, AHeadMisplacedInTheWeights) {
  const auto rolled = inputs([](RankInputs& rank) {
    if (rank.world->rank() != 1) return;
    rank.begun = [](train::Trainer& trainer) {
      const at::Tensor rows = trainer.model().params()["blocks.1.attention.qkv.weight"].data.detach();
      rows.copy_(rows.roll(4, 0).clone());
    };
  });
  EXPECT_EQ(found(on({.tensor = 2}), rolled),
            "step 1 initial weights | blocks.1 linear attention.qkv | blocks.1.attention.qkv.weight | 1");
}

TEST(PlantedFaults, AHeadMisplacedInAttention) {
  const Output attended(small_run(), 1, model::OpKind::Attention);
  const auto rolled = [=](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
    if (attended.is(place)) value = value.roll(4, -1);
  };
  EXPECT_EQ(found(on({.tensor = 2}), values(0, rolled)), "step 1 forward | blocks.0 attention | output bt(kmd) | 0");
}

// Biases are zero in the first step.
TEST(PlantedFaults, ABiasAddedByEveryRank) {
  const Output added(small_run(), 2, model::OpKind::Residual);
  const auto twice = [=](RankInputs each, const auto& run) {
    at::Tensor bias;
    each.begun = [&](train::Trainer& trainer) {
      bias = trainer.model().params()["blocks.1.attention.projection.bias"].data.detach();
    };
    const auto add = [&](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
      if (added.is(place)) value = value.add(bias);
    };
    values(kAllRanks, add)(each, run);
  };
  EXPECT_EQ(found(on({.tensor = 2}), twice), "step 2 forward | blocks.1 residual 1 | output btc | 0 1");
}

TEST(PlantedFaults, AGradientLostInBackward) {
  const Output attended(small_run(), 1, model::OpKind::Attention);
  const auto lost = [=](const nn::MadeValue& place, const nn::Microbatch&, at::Tensor& value) {
    if (!attended.is(place)) return;
    value = value.view_as(value);
    value.register_hook([](const at::Tensor& gradient) { return gradient.mul(0.999); });
  };
  EXPECT_EQ(
      found(on({.data = 2}), values(1, lost)),
      "step 1 backward | blocks.0 linear attention.projection | gradient of blocks.0 attention output bt(kmd) | 1");
}

TEST(PlantedFaults, AnUpdateOfOneRank) {
  const auto changed = [](void (*change)(OptimizerSpec & optimizer)) {
    return inputs([=](RankInputs& rank) {
      if (rank.world->rank() == 1) change(rank.spec.optimizer);
    });
  };
  const RunSpec run = on({.data = 2});
  const std::string of_first = "step 1 update | embedding lookup wte | wte.weight | 1";
  EXPECT_EQ(found(run, changed([](OptimizerSpec& optimizer) { optimizer.lr *= 1.001; })), of_first);
  EXPECT_EQ(found(run, changed([](OptimizerSpec& optimizer) { optimizer.weight_decay = 0; })), of_first);
  const auto frozen_norms = changed([](OptimizerSpec& optimizer) { optimizer.groups = {{"*ln_2*", 0.5}}; });
  EXPECT_EQ(found(run, frozen_norms), "step 1 update | blocks.0 layer norm ln_2 | blocks.0.ln_2.weight | 1");
  const auto unclipped =
      changed([](OptimizerSpec& optimizer) { optimizer.clip_norm = 0, optimizer.kind = OptimizerKind::Sgd; });
  RunSpec descent = run;
  descent.optimizer.kind = OptimizerKind::Sgd;
  EXPECT_EQ(found(descent, unclipped), of_first);
}

}  // namespace
}  // namespace braid::verify::faults_test
