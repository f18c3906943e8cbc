// Faults that are planted in one rank or one group are named: step, phase, op, tensor and ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "tests/verify/faulty_run.h"

namespace braid::verify::faults_test {
namespace {

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
