// The plan of a save: everything once, the same on all ranks, fairly shared; and what no plan can be made of.
#include "braid/ckpt/shard_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/box_runs.h"
#include "tests/ckpt/sample_tensors.h"

namespace braid::ckpt::shard_plan_test {
namespace {

using Listings = std::vector<std::string>;

Listings of(const MeshSpec& spec) {
  const mesh::DeviceMesh mesh(spec);
  Listings listings;
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    listings.push_back(packed(listed(sample_tensors(mesh, rank).wanted)));
  }
  return listings;
}

std::string error_of(const Listings& listings) {
  try {
    plan_world(listings);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

ListedTensor rows(const std::string& name, int64_t extent, int64_t begin, int64_t end) {
  return {{name, ElementType::F32, {extent, 4}}, {{{begin, 0}, {end, 4}}}};
}

std::map<int, int64_t> bytes_by_writer(const WorldPlan& plan) {
  std::map<int, int64_t> bytes;
  for (const auto& [tensor, box, writer] : plan.boxes) {
    bytes[writer] += box.num_elements() * bytes_per_element(plan.tensors[tensor].type);
  }
  return bytes;
}

TEST(ShardPlan, EveryMeshWritesEveryElementOnce) {
  for (const auto& mesh : meshes_up_to(8)) {
    const WorldPlan plan = plan_world(of(mesh));
    std::vector<std::vector<const mesh::Box*>> boxes(plan.tensors.size());
    for (const auto& written : plan.boxes) boxes[written.tensor].push_back(&written.box);
    int64_t bytes = 0;
    for (size_t t = 0; t < plan.tensors.size(); ++t) {
      const TensorInfo& info = plan.tensors[t];
      EXPECT_FALSE(boxes[t].empty()) << info.name;
      EXPECT_TRUE(cover_once(boxes[t], info.shape)) << info.name;
      bytes += mesh::num_elements(info.shape) * bytes_per_element(info.type);
    }
    EXPECT_EQ(plan.bytes, bytes);
    EXPECT_EQ(plan.tensors, plan_world(of({})).tensors);
  }
}

TEST(ShardPlan, ARankWritesWhatItHolds) {
  const mesh::DeviceMesh mesh({.pipe = 2, .data = 2, .tensor = 2});
  const WorldPlan plan = plan_world(of({.pipe = 2, .data = 2, .tensor = 2}));
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    std::map<std::string, int64_t> held;
    for (const auto& [info, boxes] : listed(sample_tensors(mesh, rank).wanted)) {
      for (const mesh::Box& box : boxes) held[info.name] += box.num_elements();
    }
    for (const auto& [tensor, box, writer] : plan.boxes) {
      if (writer != rank) continue;
      EXPECT_LE(box.num_elements(), held[plan.tensors[tensor].name]);
    }
  }
}

TEST(ShardPlan, OneRankHasTwoFilesOfWholeTensors) {
  const Shard shard = shard_of(plan_world(of({})), 0);
  ASSERT_EQ(shard.files.size(), 2u);
  EXPECT_EQ(shard.files[0].name, "model.safetensors");
  EXPECT_EQ(shard.files[1].name, "optimizer.safetensors");
  for (const ShardFile& file : shard.files) {
    for (size_t i = 0; i < file.boxes.size(); ++i) {
      EXPECT_EQ(file.entries[i].info, file.boxes[i].tensor);
      EXPECT_EQ(file.boxes[i].box.num_elements(), mesh::num_elements(file.boxes[i].tensor.shape));
    }
  }
}

TEST(ShardPlan, FilesAreNumberedFromOneWithoutGaps) {
  const std::string none = packed(std::vector<ListedTensor>());
  const WorldPlan plan =
      plan_world({none, packed({rows("w", 8, 0, 4)}), packed({rows("w", 8, 4, 8), rows("o/w", 8, 0, 8)})});
  EXPECT_TRUE(shard_of(plan, 0).files.empty());
  EXPECT_EQ(shard_of(plan, 1).files.at(0).name, "model-00001-of-00002.safetensors");
  EXPECT_EQ(shard_of(plan, 2).files.at(0).name, "model-00002-of-00002.safetensors");
  EXPECT_EQ(shard_of(plan, 2).files.at(1).name, "optimizer.safetensors");
  EXPECT_EQ(shard_of(plan, 1).files.at(0).entries.at(0).info, (TensorInfo{"w[0:4,0:4]", ElementType::F32, {4, 4}}));
  EXPECT_EQ(shard_of(plan_world({none}), 0).files.at(0).name, "model.safetensors");
}

// Replicas split the writing of their copies, whatever their number.
TEST(ShardPlan, ReplicasShareTheWriting) {
  std::vector<ListedTensor> tensors;
  for (int64_t i = 0; i < 40; ++i) tensors.push_back(rows(cat("w", i), 100 + i, 0, 100 + i));
  for (const size_t ranks : {2u, 3u, 8u}) {
    const WorldPlan plan = plan_world(Listings(ranks, packed(tensors)));
    const auto bytes = bytes_by_writer(plan);
    EXPECT_EQ(bytes.size(), ranks);
    for (const auto& [rank, written] : bytes) {
      EXPECT_NEAR(static_cast<double>(written), static_cast<double>(plan.bytes) / static_cast<double>(ranks), 140 * 16);
    }
  }
}

// Those who write parts of their own anyway leave what all hold to the others.
TEST(ShardPlan, WhoHasMoreToWriteAloneWritesLessOfWhatIsShared) {
  const Listings listings{packed({rows("own", 50, 0, 50), rows("a", 20, 0, 20), rows("b", 20, 0, 20)}),
                          packed({rows("a", 20, 0, 20), rows("b", 20, 0, 20)})};
  EXPECT_EQ(bytes_by_writer(plan_world(listings)), (std::map<int, int64_t>{{0, 50 * 16}, {1, 40 * 16}}));
}

TEST(ShardPlan, ALargeTensorIsCutForItsReplicas) {
  const Listings four(4, packed({rows("big", 1000, 0, 1000), rows("small", 10, 0, 10)}));
  EXPECT_EQ(bytes_by_writer(plan_world(four)).size(), 2u) << "a file is not cut for little";
  const WorldPlan plan = plan_world(four, 100);
  for (const auto& [rank, bytes] : bytes_by_writer(plan)) EXPECT_NEAR(static_cast<double>(bytes), 4040, 160) << rank;
  EXPECT_EQ(bytes_by_writer(plan).size(), 4u);
  EXPECT_EQ(std::count_if(plan.boxes.begin(), plan.boxes.end(), [](const auto& box) { return box.tensor == 0; }), 4);
}

TEST(ShardPlan, NeighboursOfOneWriterAreOneBox) {
  const auto part = [](int64_t begin, int64_t end) { return rows("w", 12, begin, end); };
  const WorldPlan plan = plan_world({packed({part(0, 2), part(4, 6), part(2, 4)}), packed({part(6, 9), part(9, 12)})});
  ASSERT_EQ(plan.boxes.size(), 2u);
  EXPECT_EQ(plan.boxes[0].box, (mesh::Box{{0, 0}, {6, 4}}));
  EXPECT_EQ(plan.boxes[1].box, (mesh::Box{{6, 0}, {12, 4}}));
}

TEST(ShardPlan, AFusedMatrixThatReplicasHoldStaysWhole) {
  const ListedTensor fused{{"qkv", ElementType::F32, {6, 4}}, {{{0, 0}, {2, 4}}, {{4, 0}, {6, 4}}, {{2, 0}, {4, 4}}}};
  const WorldPlan plan = plan_world({packed({fused}), packed({fused, rows("w", 6, 0, 6)})});
  ASSERT_EQ(plan.boxes.size(), 2u);
  EXPECT_EQ(plan.boxes[0].box, (mesh::Box{{0, 0}, {6, 4}}));
  EXPECT_EQ(plan.boxes[0].writer, 0);
}

TEST(ShardPlan, WrongListingsAreNamed) {
  const auto has = [](const Listings& listings, const char* words) {
    EXPECT_NE(error_of(listings).find(words), std::string::npos) << error_of(listings);
  };
  EXPECT_EQ(error_of({packed({rows("w", 8, 0, 4)}), packed({rows("w", 8, 4, 8)})}), "no error");
  has({packed({rows("w", 8, 0, 4)}), packed({rows("w", 8, 5, 8)})}, "tensor w is covered by the boxes that ranks hold");
  has({packed({rows("w", 8, 0, 4)}), packed({rows("w", 8, 3, 8)})}, "tensor w: boxes of ranks are equal or disjoint");
  has({packed({rows("w", 8, 0, 5)}), packed({rows("w", 8, 4, 7)})}, "tensor w: boxes of ranks are equal or disjoint");
  has({packed({rows("w", 8, 0, 9)})}, "tensor w is covered");
  has({packed({rows("w", 8, 0, 8)}), packed({rows("w", 9, 0, 9)})},
      "tensor w has one shape and type on all ranks; rank 1");
  has({packed({rows("w", 8, 0, 8)}).substr(0, 50)}, "a listing is as long as it says");
}

TEST(ShardPlan, AListingComesBack) {
  const auto listing = listed(sample_tensors(mesh::DeviceMesh({.tensor = 2}), 1).wanted);
  EXPECT_EQ(unpacked_listing(packed(listing)), listing);
}

TEST(BoxCover, PinwheelsAndOverlaps) {
  const std::vector<mesh::Box> pinwheel{
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 3}}, {{2, 1}, {3, 3}}, {{1, 0}, {3, 1}}, {{1, 1}, {2, 2}}};
  std::vector<const mesh::Box*> boxes;
  for (const mesh::Box& box : pinwheel) boxes.push_back(&box);
  EXPECT_TRUE(cover_once(boxes, {3, 3})) << "no plane divides them";
  EXPECT_FALSE(cover_once(boxes, {3, 4}));
  boxes.pop_back();
  EXPECT_FALSE(cover_once(boxes, {3, 3}));
  const mesh::Box twice{{0, 1}, {1, 2}};
  boxes.push_back(&twice);
  EXPECT_FALSE(cover_once(boxes, {3, 3})) << "as many elements as there are, one of them twice";
  EXPECT_TRUE(cover_once({}, {0, 3}));
  const mesh::Box scalar;
  EXPECT_TRUE(cover_once({&scalar}, {}));
}

}  // namespace
}  // namespace braid::ckpt::shard_plan_test
