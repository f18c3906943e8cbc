// The record of what a step moves on disk: all of it, with what it is, within the step.
#include "braid/train/disk_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "braid/train/timeline_exchange.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::disk_record_test {
namespace {

using schedule::DiskContent;
using schedule::DiskDirection;
using schedule::DiskTransfer;

class DiskRecordTest : public ScratchFolder {
 protected:
  DiskRecordTest() { param::install_memory_accounting(); }  // only memory of activations moves

  // All four tiers on disk, in two folders and many chunks. Tensors have blocks of the disk.
  RunSpec on_disk(const MeshSpec& mesh) {
    RunSpec spec = tiny_spec(4, 8);
    spec.model.layers = 2;
    spec.model.context = 32;
    spec.mesh = mesh;
    spec.train.microbatch = 2;
    spec.train.dtype = DType::BFloat16;
    spec.model.width *= 4;
    spec.memory.optimizer = spec.memory.gradients = spec.memory.parameters = spec.memory.activations = Tier::Disk;
    spec.memory.paths = {".", "."};  // the files have no names
    spec.memory.chunk_mb = 1.0 / 128;
    return spec;
  }
};

int64_t bytes_of(const std::vector<DiskTransfer>& transfers) {
  int64_t sum = 0;
  for (const DiskTransfer& transfer : transfers) sum += transfer.bytes;
  return sum;
}

// Before the step that is looked at, another one is recorded.
void expect_whole_record(Trainer& trainer, size_t kinds) {
  trainer.step();
  const double begin = now_seconds();
  const int64_t counted = trainer.step().disk_bytes;
  const double end = now_seconds();
  DiskRecord& record = trainer.on_disk();
  const std::vector<DiskTransfer> transfers = record.transfers();
  EXPECT_GT(counted, 0);
  EXPECT_EQ(bytes_of(transfers), counted);
  EXPECT_TRUE(std::ranges::is_sorted(transfers, {}, &DiskTransfer::begin));
  std::set<std::pair<DiskDirection, DiskContent>> seen;
  for (const DiskTransfer& transfer : transfers) {
    EXPECT_LE(begin, transfer.begin);
    EXPECT_LE(transfer.begin, transfer.end);
    EXPECT_LE(transfer.end, end);
    seen.insert({transfer.direction, transfer.content});
  }
  EXPECT_GE(seen.size(), kinds);
  trainer.evaluate();
  EXPECT_EQ(bytes_of(record.transfers()), counted) << "an evaluation is no part of the step";
}

TEST_F(DiskRecordTest, HasAllBytesOfTheLastStepAndTheirTimes) {
  for (const double clip_norm : {0.0, 0.1, 1e9}) {  // not clipped, clipped, speculative
    for (const auto reduction : {Reduction::Fast, Reduction::Reproducible}) {
      SCOPED_TRACE(cat(clip_norm, " ", reduction));
      RunSpec spec = on_disk({});
      spec.optimizer.clip_norm = clip_norm;
      spec.train.reduction = reduction;
      on_every_rank(spec, [](Trainer& trainer) { expect_whole_record(trainer, 8); });
    }
  }
  RunSpec spec = on_disk({.pipe = 2, .data = 2});
  spec.sync.zero = 3;
  // The last rank has one block, whose activations are still in memory in backward.
  on_every_rank(spec, [](Trainer& trainer) { expect_whole_record(trainer, 7); });
}

// Weights of 2 bytes are written by the update, which reads gradients. In memory, float32 weights are backed up.
TEST_F(DiskRecordTest, SaysWhatEachTransferIs) {
  using Bytes = std::map<std::pair<DiskDirection, DiskContent>, int64_t>;
  const auto moved = [](const RunSpec& spec) {
    Bytes bytes;
    int64_t elements = 0;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.step();
      trainer.step();
      elements = trainer.model().params().num_owned();
      for (const DiskTransfer& transfer : trainer.on_disk().transfers()) {
        bytes[{transfer.direction, transfer.content}] += transfer.bytes;
      }
    });
    for (auto& [what, of_all] : bytes) EXPECT_EQ(std::exchange(of_all, of_all / elements) % elements, 0);
    return bytes;
  };
  RunSpec spec = on_disk({});
  spec.optimizer.clip_norm = 0;
  spec.memory.activations = spec.memory.gradients = spec.memory.parameters = Tier::Resident;
  const std::pair reads{DiskDirection::Read, DiskContent::Optimizer},
      writes{DiskDirection::Write, DiskContent::Optimizer};
  EXPECT_EQ(moved(spec), (Bytes{{reads, 12}, {writes, 12}})) << "moments and masters";
  spec.train.dtype = DType::Float32;
  spec.optimizer.clip_norm = 1e9;
  EXPECT_EQ(moved(spec), (Bytes{{reads, 8}, {writes, 8}, {{DiskDirection::Write, DiskContent::Parameters}, 4}}));
}

TEST_F(DiskRecordTest, IsInTheTimelineOfAllRanks) {
  const double begin = now_seconds();
  on_every_rank(on_disk({.data = 2}), [begin](Trainer& trainer) {
    const int64_t counted = trainer.step().disk_bytes;
    const schedule::Timeline timeline = trainer.timeline();
    EXPECT_EQ(timeline.extent().begin, 0);
    EXPECT_LE(timeline.extent().end, now_seconds() - begin) << "not since the host started";
    ASSERT_EQ(timeline.disk.size(), 2u);
    const std::vector<DiskTransfer>& shown = timeline.disk[static_cast<size_t>(trainer.groups().world.rank())];
    EXPECT_EQ(bytes_of(shown), counted);
    const std::vector<DiskTransfer> own = trainer.on_disk().transfers();
    ASSERT_EQ(shown.size(), own.size());
    for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(shown[i].end - shown[0].begin, own[i].end - own[0].begin, 1e-9);
  });
}

TEST_F(DiskRecordTest, IsEmptyWithoutADisk) {
  RunSpec spec = tiny_spec(2, 8);
  on_every_rank(spec, [](Trainer& trainer) {
    EXPECT_EQ(trainer.step().disk_bytes, 0);
    EXPECT_TRUE(trainer.on_disk().transfers().empty());
    EXPECT_TRUE(trainer.timeline().disk.at(0).empty());
  });
}

// 0 to 9 of one kind, in which a transfer of another kind lies.
TEST(Transfers, AreJoinedBeyondANumber) {
  std::vector<DiskTransfer> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back({DiskDirection::Read, DiskContent::Optimizer, 100, i + 0.0, i + 0.5});
    if (i == 4) all.push_back({DiskDirection::Write, DiskContent::Gradients, 7, 4.25, 4.75});
  }
  EXPECT_EQ(at_most(11, all).size(), 11);
  const std::vector<DiskTransfer> joined = at_most(4, all);  // by three
  ASSERT_EQ(joined.size(), 5);
  EXPECT_EQ(bytes_of(joined), bytes_of(all));
  EXPECT_EQ(joined[0].bytes, 300);
  EXPECT_EQ(joined[0].begin, 0);
  EXPECT_EQ(joined[0].end, 2.5);
  EXPECT_EQ(joined[2].content, DiskContent::Gradients);
}

}  // namespace
}  // namespace braid::train::disk_record_test
