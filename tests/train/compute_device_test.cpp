// Requirements of a device, as far as the host decides them.
#include "braid/train/compute_device.h"

#include <gtest/gtest.h>

#include <map>

#include "braid/base/errors.h"
#include "braid/train/step_schedule.h"
#include "tests/train/layout_run.h"

namespace braid::train::compute_device_test {
namespace {

TEST(ComputeDevice, FollowsTheSpec) {
  RunSpec spec;
  EXPECT_TRUE(compute_device(spec).is_cpu());
  spec.train.device = DeviceKind::Cuda;
  EXPECT_EQ(compute_device(spec), at::Device(at::kCUDA, 0));
}

TEST(ComputeDevice, RefusesWhereTheLibrariesAreMissing) {
  RunSpec spec;
  open_device(spec);
  spec.train.device = DeviceKind::Cuda;
  try {
    open_device(spec);
    GTEST_SKIP() << "this machine has a CUDA device";
  } catch (const ConfigError& refused) {
    ASSERT_EQ(refused.problems().size(), 1u);
    EXPECT_EQ(refused.problems()[0].key, "train.device");
    EXPECT_NE(refused.problems()[0].rule.find("needs"), std::string::npos) << refused.what();
  }
}

bool records(const RunSpec& spec) { return records_graphs(spec, step_schedule(spec)); }

TEST(ComputeDevice, RecordsWhatHasFixedShapesAndOnePlacePerGradient) {
  RunSpec spec;
  EXPECT_FALSE(records(spec));
  spec.train.device = DeviceKind::Cuda;
  EXPECT_TRUE(records(spec));
  RunSpec off = spec, reproducible = spec, documents = spec;
  off.train.cuda_graph = GraphUse::Off;
  reproducible.train.reduction = Reduction::Reproducible;
  documents.data.attention = AttentionMask::Document;
  EXPECT_FALSE(records(off));
  EXPECT_FALSE(records(reproducible));
  EXPECT_FALSE(records(documents));
}

// One rank may have several stages under some schedules, and weights of several versions under others.
TEST(ComputeDevice, RecordsOnlyAWholeModelThatIsUpdatedAfterTheStep) {
  RunSpec spec;
  spec.train.device = DeviceKind::Cuda;
  for (const auto& [schedule, expected] : std::map<std::string, bool>{
           {"gpipe", true}, {"zb-h1", true}, {"interleaved", false}, {"zb-v", false}, {"pipedream", false}}) {
    spec.pipeline.schedule = schedule;
    EXPECT_EQ(records(spec), expected) << schedule;
  }
}

TEST(DeviceMemory, WhatIsNotKeptAreActivations) {
  const auto at = [](param::MemoryCategory category) { return static_cast<size_t>(category); };
  MemoryByCategory kept{};
  kept[at(param::MemoryCategory::Parameters)] = 10;
  kept[at(param::MemoryCategory::Gradients)] = 20;
  kept[at(param::MemoryCategory::Optimizer)] = 40;
  const param::MemoryUse use = device_memory_use({100, 250}, kept);
  EXPECT_EQ(use.bytes[at(param::MemoryCategory::Parameters)], 10);
  EXPECT_EQ(use.peak_bytes[at(param::MemoryCategory::Optimizer)], 40);
  EXPECT_EQ(use.bytes[at(param::MemoryCategory::Activations)], 30);
  EXPECT_EQ(use.peak_bytes[at(param::MemoryCategory::Activations)], 180);
  EXPECT_EQ(use.peak_total_bytes, 250);
  EXPECT_EQ(device_memory_use({5, 5}, kept).bytes[at(param::MemoryCategory::Activations)], 0)
      << "never less than nothing";
}

}  // namespace
}  // namespace braid::train::compute_device_test
