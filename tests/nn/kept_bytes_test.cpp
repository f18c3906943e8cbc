// Bytes of activations, counted: what is kept for backward follows from the shapes, and peaks grow by just that.
#include <ATen/Parallel.h>

#include <thread>

#include "braid/layout/account.h"
#include "braid/layout/parameters.h"
#include "braid/param/memory_account.h"
#include "tests/nn/two_stages.h"
#include "tests/support/drawn_models.h"

namespace braid::nn::kept_bytes_test {
namespace {

constexpr int64_t kContext = 8, kWidth = 24, kHeads = 6, kFfn = 72, kKvHeads = 2;
constexpr int64_t kRows = kSequences * kContext, kFloat = 4;
constexpr int64_t kHidden = kRows * kWidth * kFloat;  // bytes of a residual stream

ModelSpec plain_model(ModelFamily family) {
  ModelSpec spec;
  spec.family = family;
  spec.heads = kHeads;
  spec.width = kWidth;
  spec.context = kContext;
  spec.vocab = 19;
  spec.vocab_multiple = 1;
  if (family == ModelFamily::Gpt2) return spec;
  spec.kv_heads = kKvHeads;
  spec.ffn = kFfn;
  return spec;
}

// The first stage of a model without dropout: the embedding and `layers` blocks.
struct StageOfBlocks {
  ModelSpec model;
  int layers = 1;
  std::string recompute = "none";
  WeightPass weights = WeightPass::AtOnce;
  int in_flight = 1;                                  // microbatches before the first backward
  int ranks = 1;                                      // tensor ranks, which split the tokens between their products
  std::shared_ptr<param::SwapSpace> space = nullptr;  // of what is kept; null: memory
};

struct Bytes {
  int64_t kept = 0;     // after the forwards, outputs apart
  int64_t peak = 0;     // of forwards and backwards
  int64_t waiting = 0;  // after the backwards, for weight gradients
  int64_t left = 0;     // after these
};

constexpr int kFirstRank = 920;  // of the account of memory

int64_t now() { return param::memory_use(kFirstRank).bytes[static_cast<int>(param::MemoryCategory::Activations)]; }

Bytes run_stage(const StageOfBlocks& of, Communicator& tensor) {
  StagesRun run{of.model};
  run.model.layers = of.layers;
  layout::ModelParams params = layout::model_params(run.model, tensor.rank(), tensor.size());
  const layout::Sequence tokens = of.ranks > 1 ? layout::Sequence::Split : layout::Sequence::Whole;
  if (of.ranks > 1) {
    layout::split_tokens(model::graph_of(run.model), {tensor.rank(), of.ranks, mesh::Axis::Tensor}, params);
  }
  param::ParamStore store(params, Reduction::Fast, at::kFloat, 1);
  const auto sink = param::accumulating_sink(store);
  param::WeightGradQueue queue(*sink);
  const spec::Recompute policy = *spec::recompute_policy(of.recompute);
  const RankContext rank{tensor, queue, kept_by_layers(policy), tokens};
  Segments::Blocks blocks;
  for (int i = 0; i <= of.layers; ++i) blocks.push_back(model_block(run.model, {i}, store, rank));
  const std::vector<Segment> plan = plan_segments(policy, {1, of.layers, 0});
  Segments segments(blocks, of.space ? block_by_block(plan) : plan, queue);
  if (of.space) segments.keep_in(of.space, of.layers + 1);
  sink->begin_step(of.in_flight);

  Bytes bytes;
  param::reset_memory_peak(kFirstRank);
  std::vector<Passage> passages;
  for (int micro = 0; micro < of.in_flight; ++micro) {
    // The output goes to the next stage; what of it stays is the graph's.
    segments.forward({}, passages.emplace_back(stages_microbatch(run, micro)));
  }
  for (int part = 0; of.space && part < 2; ++part) of.space->next_part();  // the copies are written
  bytes.kept = now();
  const at::Tensor dy = formula_tensor("dy", {kSequences, of.model.context / of.ranks, of.model.width}).to(at::kFloat);
  for (Passage& passage : passages) segments.backward(std::move(passage), dy, of.weights);
  bytes.waiting = now();
  queue.run_all();
  bytes.left = now();
  bytes.peak = param::memory_use(kFirstRank).peak_bytes[static_cast<int>(param::MemoryCategory::Activations)];
  return bytes;
}

Bytes bytes_of(const StageOfBlocks& of) {
  Bytes bytes;
  param::install_memory_accounting();
  run_ranks(of.ranks, [&](Communicator& tensor) {
    at::get_num_threads();
    at::set_num_threads(1);
    param::account_memory_to(kFirstRank + tensor.rank());
    const Bytes own = run_stage(of, tensor);
    if (tensor.rank() == 0) bytes = own;
  });
  return bytes;
}

// With this many tokens even a table of a number a token has a block of the disk. The runs of a window have less each.
TEST(KeptBytes, AreOnDiskWhereTheyAreToBe) {
  DrawnModels models;
  for (int i = 0; i < 20; ++i) {
    ModelSpec model = models.draw(1);
    model.context = 512;
    model.window = 0;
    for (const std::string recompute : {"none", "selective", "full"}) {
      const auto space =
          std::make_shared<param::SwapSpace>(param::SwapOptions{.place = {.folders = {"."}, .bytes = 64 << 20}});
      const Bytes bytes = bytes_of({.model = model, .layers = 2, .recompute = recompute, .space = space});
      EXPECT_LT(bytes.kept, disk::kBlockBytes) << recompute << " " << model.family << " " << i;
      EXPECT_EQ(bytes.left, 0);
    }
  }
}

int64_t kept_bytes(const char* recompute, int layers, int in_flight = 1) {
  return bytes_of({plain_model(ModelFamily::Gpt2), layers, recompute, WeightPass::AtOnce, in_flight}).kept;
}
int64_t peak_bytes(const char* recompute, int layers, int in_flight = 1) {
  return bytes_of({plain_model(ModelFamily::Gpt2), layers, recompute, WeightPass::AtOnce, in_flight}).peak;
}

// The bytes of one GPT-2 block, in units of the stream: its input, normed, qkv 3, attention, the sum, normed, up 4,
// GELU 4; and per row two statistics of two norms, one of each head's softmax.
constexpr int64_t kGpt2Block = 16 * kHidden + kRows * (4 + kHeads) * kFloat;
// Input, qkv 3, sum, up 4.
constexpr int64_t kGpt2Selected = 9 * kHidden + kRows * 4 * kFloat;

TEST(KeptBytes, OfGpt2FollowFromShapes) {
  EXPECT_EQ(kept_bytes("none", 3), 3 * kGpt2Block + kHidden) << "the output is part of the graph";
  EXPECT_EQ(kept_bytes("selective", 3), 3 * kGpt2Selected + kHidden);
  EXPECT_EQ(kept_bytes("full", 3), 2 * kHidden);
  EXPECT_EQ(kept_bytes("every:2", 5), 2 * kHidden);
  EXPECT_EQ(kept_bytes("every:9", 5), 0) << "made again from tokens";
}

// RMSNorm has one statistic a row; qkv is h + 2 k heads; gate and up are one tensor.
TEST(KeptBytes, OfLlamaFollowFromShapes) {
  const int64_t qkv = kHidden * (kHeads + 2 * kKvHeads) / kHeads, inner = kRows * kFfn * kFloat;
  const int64_t everything = 5 * kHidden + qkv + 3 * inner + kRows * (2 + kHeads) * kFloat;
  const int64_t selected = 2 * kHidden + qkv + 2 * inner + kRows * 2 * kFloat;
  EXPECT_EQ(bytes_of({plain_model(ModelFamily::Llama), 3, "none"}).kept, 3 * everything + kHidden);
  EXPECT_EQ(bytes_of({plain_model(ModelFamily::Llama), 3, "selective"}).kept, 3 * selected + kHidden);
  EXPECT_EQ(bytes_of({plain_model(ModelFamily::Llama), 3, "full"}).kept, 2 * kHidden);
}

// A norm after each branch keeps its input and one statistic a row; capped attention keeps what the other does, with a
// window too.
TEST(KeptBytes, OfGemma2FollowFromShapes) {
  ModelSpec model = plain_model(ModelFamily::Gemma2);
  model.window = 3;
  model.attention_cap = 50;
  const int64_t qkv = kHidden * (kHeads + 2 * kKvHeads) / kHeads, inner = kRows * kFfn * kFloat;
  const int64_t everything = 7 * kHidden + qkv + 3 * inner + kRows * (4 + kHeads) * kFloat;
  const int64_t selected = 4 * kHidden + qkv + 2 * inner + kRows * 4 * kFloat;
  EXPECT_EQ(bytes_of({model, 3, "none"}).kept, 3 * everything + kHidden);
  EXPECT_EQ(bytes_of({model, 3, "selective"}).kept, 3 * selected + kHidden);
  EXPECT_EQ(bytes_of({model, 3, "full"}).kept, 2 * kHidden);
}

// The bytes that a block keeps by the rows of the op table.
class Counted {
 public:
  explicit Counted(const ModelSpec& model, int ranks = 1)
      : account_(layout::account_of(model)),
        rank_(layout::rank_extents(account_, {.tokens = kRows, .tensor = ranks, .between = layout::Sequence::Split})) {}

  int64_t kept(const std::string& recompute) const {
    const auto part = recompute == "selective" ? &layout::PartAccount::selected : &layout::PartAccount::everything;
    return bytes(account_.parts[0].*part) + bytes(account_.parts[1].*part);
  }
  int64_t waiting() const { return bytes(account_.parts[0].pending) + bytes(account_.parts[1].pending); }

 private:
  int64_t bytes(const layout::Kept& kept) const {
    return kFloat * static_cast<int64_t>(kept.elements.at(rank_) + kept.floats.at(rank_));
  }

  layout::ModelAccount account_;
  layout::RankExtents rank_;
};

// The guard of the op table: a row that says something else than its kernel does is found here.
TEST(OpTable, SaysWhatBlocksKeep) {
  DrawnModels models;
  for (int i = 0; i < 20; ++i) {
    ModelSpec model = models.draw(1);
    model.context = kContext;
    if (model.window > 0) model.window = 5;
    const int64_t output = kRows * model.width * kFloat;
    for (const std::string recompute : {"none", "selective"}) {
      EXPECT_EQ(bytes_of({model, 2, recompute}).kept, 2 * Counted(model).kept(recompute) + output)
          << recompute << " " << model.family << " " << i;
    }
    const auto waiting = [&](int layers) { return bytes_of({model, layers, "none", WeightPass::Later}).waiting; };
    const int64_t more = waiting(2) - waiting(1) - Counted(model).waiting();
    EXPECT_GE(more, 0) << model.family << " " << i;
    EXPECT_LE(more, 4 * 2 * (model.width + 8) * kFloat) << "sums for norms wait with the products";
  }
}

// Under sequence parallelism a rank keeps its part of the tokens between products, and of a product's input.
TEST(OpTable, SaysWhatBlocksKeepOfSplitTokens) {
  DrawnModels models;
  for (int i = 0; i < 20; ++i) {
    ModelSpec model = models.draw(2);
    model.context = kContext;
    if (model.window > 0) model.window = 5;
    const int64_t output = kRows / 2 * model.width * kFloat;
    const int64_t looked_up = kRows * (8 + 1);  // the rows of the split table, and whether the rank has them
    for (const std::string recompute : {"none", "selective"}) {
      EXPECT_EQ(bytes_of({.model = model, .layers = 2, .recompute = recompute, .ranks = 2}).kept,
                2 * Counted(model, 2).kept(recompute) + output + looked_up)
          << recompute << " " << model.family << " " << i;
    }
    const auto waiting = [&](int layers) {
      return bytes_of({.model = model, .layers = layers, .weights = WeightPass::Later, .ranks = 2}).waiting;
    };
    const int64_t more = waiting(2) - waiting(1) - Counted(model, 2).waiting();
    EXPECT_GE(more, 0) << model.family << " " << i;
    EXPECT_LE(more, 8 * 2 * (model.width + 8) * kFloat) << "sums for norms and biases wait with the products";
  }
}

TEST(KeptBytes, EachMicrobatchInFlightKeepsItsOwn) {
  for (const char* policy : {"none", "selective", "full", "every:2"}) {
    EXPECT_EQ(kept_bytes(policy, 4, 5), 5 * kept_bytes(policy, 4)) << policy;
  }
}

// One more block costs what is kept of it, and one more microbatch what is kept of all blocks; the rest of the peak is
// one block's, or one segment's, in backward, the same for all of three segments and more.
TEST(PeakBytes, GrowByWhatIsKept) {
  const auto per_block = [](const char* policy, int blocks) {
    return (peak_bytes(policy, 4 + blocks) - peak_bytes(policy, 4)) / blocks;
  };
  EXPECT_EQ(per_block("none", 1), kGpt2Block);
  EXPECT_EQ(per_block("selective", 1), kGpt2Selected);
  EXPECT_EQ(per_block("full", 1), kHidden);
  EXPECT_EQ(peak_bytes("every:2", 8) - peak_bytes("every:2", 6), kHidden);
  for (const char* policy : {"none", "selective", "full", "every:2"}) {
    EXPECT_EQ(peak_bytes(policy, 4, 3) - peak_bytes(policy, 4, 2), kept_bytes(policy, 4)) << policy;
  }
}

// The input of the block that is run again is its own.
TEST(PeakBytes, OfFullAreBlockInputsAndOneBlock) {
  EXPECT_EQ(peak_bytes("full", 1), peak_bytes("none", 1));
  EXPECT_EQ(peak_bytes("full", 6), 4 * kHidden + peak_bytes("none", 1));
  EXPECT_EQ(peak_bytes("every:3", 9), kHidden + peak_bytes("none", 3));
}

// With a split backward, what waits for the weight pass is the inputs and output gradients of the products, however
// they came about; after it nothing is left.
TEST(WaitingBytes, AreTheSameWhateverWasKept) {
  for (const ModelFamily family : {ModelFamily::Gpt2, ModelFamily::Llama}) {
    const int64_t want = bytes_of({plain_model(family), 4, "none", WeightPass::Later}).waiting;
    EXPECT_GT(want, 0);
    for (const char* policy : {"selective", "full", "every:2"}) {
      EXPECT_EQ(bytes_of({plain_model(family), 4, policy, WeightPass::Later}).waiting, want)
          << family << ", " << policy;
    }
    for (const char* policy : {"none", "selective", "full", "every:2"}) {
      EXPECT_EQ(bytes_of({plain_model(family), 4, policy, WeightPass::AtOnce}).waiting, 0) << family << ", " << policy;
      EXPECT_EQ(bytes_of({plain_model(family), 4, policy, WeightPass::Later}).left, 0) << family << ", " << policy;
    }
  }
}

}  // namespace
}  // namespace braid::nn::kept_bytes_test
