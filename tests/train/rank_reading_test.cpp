// The samples that each rank reads, and that the hash of a step tells what was read.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "braid/comm/local/run_ranks.h"
#include "braid/mesh/device_mesh.h"
#include "tests/train/layout_run.h"

namespace braid::train::rank_reading_test {
namespace {

// Tokens that tell a rank's thread how many it has read, and may be other ones there.
class WatchedTokens final : public data::TokenSource {
 public:
  explicit WatchedTokens(data::Tokens tokens) : tokens_(std::move(tokens)) {}
  int64_t num_tokens() const override { return tokens_->num_tokens(); }
  int64_t num_documents() const override { return tokens_->num_documents(); }
  void read(int64_t begin, std::span<int64_t> out) const override {
    tokens_->read(begin, out);
    num_read += static_cast<int64_t>(out.size());
    if (others_here) std::reverse(out.begin(), out.end());
  }
  void read_documents(int64_t begin, std::span<int64_t> out) const override { tokens_->read_documents(begin, out); }

  static thread_local int64_t num_read;
  static thread_local bool others_here;

 private:
  data::Tokens tokens_;
};
thread_local int64_t WatchedTokens::num_read = 0;
thread_local bool WatchedTokens::others_here = false;

struct Reading {
  std::vector<int64_t> tokens;  // by world rank, in the second step
  uint64_t hash = 0;            // of that step
};

Reading second_step(const RunSpec& spec, int rank_with_others = -1) {
  data::Corpus corpus = tiny_corpus();
  corpus.train[0].tokens = std::make_shared<WatchedTokens>(corpus.train[0].tokens);
  const int num_ranks = mesh::DeviceMesh(spec.mesh).num_ranks();
  Reading reading{std::vector<int64_t>(static_cast<size_t>(num_ranks)), 0};
  std::mutex lock;
  run_ranks(num_ranks, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Trainer trainer(spec, corpus, world);
    trainer.step();
    WatchedTokens::num_read = 0;
    WatchedTokens::others_here = world.rank() == rank_with_others;
    const uint64_t hash = trainer.step().sample_hash;
    const std::scoped_lock hold(lock);
    reading.tokens[static_cast<size_t>(world.rank())] = WatchedTokens::num_read;
    if (world.rank() == 0) reading.hash = hash;
  });
  return reading;
}

RunSpec reading_spec(const MeshSpec& mesh, int batch) {
  RunSpec spec = tiny_spec(6, batch);
  spec.mesh = mesh;
  return spec;
}

TEST(RankReading, EndsOfThePipelineReadTheirShareAndTheMiddleNothing) {
  const int context = tiny_spec(6, 8).model.context;
  const RunSpec spec = reading_spec({.pipe = 3, .data = 2}, 8);
  const Reading reading = second_step(spec);
  const mesh::DeviceMesh mesh(spec.mesh);
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    const bool middle = mesh.coords(rank)[mesh::Axis::Pipe] == 1;
    EXPECT_EQ(reading.tokens[static_cast<size_t>(rank)], middle ? 0 : 4 * context) << rank;
  }
}

TEST(RankReading, DoesNotGrowWithTheOthers) {
  const int context = tiny_spec(6, 8).model.context;
  for (const int data : {1, 2, 4}) {
    for (const int64_t tokens : second_step(reading_spec({.data = data}, 4 * data)).tokens)
      EXPECT_EQ(tokens, 2 * 4 * context);
  }
}

// Each end of each replica, on every kind of layout.
TEST(RankReading, AnotherSampleOnAnyRankIsAnotherHash) {
  const uint64_t honest = second_step(reading_spec({}, 8)).hash;
  for (const auto& [schedule, mesh] :
       {ScheduleOnMesh{"1f1b", {.pipe = 2, .data = 2}}, {"zb-v", {.pipe = 2}}, {"dualpipe", {.pipe = 2}}}) {
    RunSpec spec = reading_spec(mesh, 8);
    spec.pipeline.schedule = schedule;
    EXPECT_EQ(second_step(spec).hash, honest) << schedule;
    for (int rank = 0; rank < mesh::DeviceMesh(mesh).num_ranks(); ++rank) {
      const Reading other = second_step(spec, rank);
      const bool reads = other.tokens[static_cast<size_t>(rank)] > 0;  // zb-v: both ends are rank 0's
      EXPECT_EQ(reads, schedule != "zb-v" || rank == 0);
      EXPECT_EQ(other.hash != honest, reads) << schedule << " rank " << rank;
    }
  }
}

}  // namespace
}  // namespace braid::train::rank_reading_test
