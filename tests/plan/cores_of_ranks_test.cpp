// Ranks on hosts whose cores they share.
#include <gtest/gtest.h>

#include "braid/plan/predict_run.h"

namespace braid::plan::cores_of_ranks_test {
namespace {

// 7B.
RunSpec llama() {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama,
               .layers = 32,
               .heads = 32,
               .width = 4096,
               .ffn = 11008,
               .context = 4096,
               .vocab = 32000};
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::Float32;
  return run;
}

// One host of each of these numbers of cores, all kinds of their own.
Cluster hosts(std::initializer_list<int> cores) {
  Cluster cluster{.name = "hosts", .devices = {}, .node = {1e10, 1e-6}, .network = {1e10, 1e-6}};
  for (const int count : cores) {
    DeviceGroup& kind = cluster.devices.emplace_back();
    kind.per_node = count;
    kind.memory_bytes = 1e10;
    kind.memory_bytes_per_second = 1e10;
    kind.shared_cores = true;
    kind.peaks = {{DType::Float32, 1e11}};
  }
  return cluster;
}

// Four ranks one behind the other on a host: with four cores or more as simulated, with two no faster than their work.
TEST(CoresOfRanks, AreSharedByThoseThatCompute) {
  RunSpec run = llama();
  run.model.layers = 4;
  run.mesh = {.pipe = 4};
  Cluster host = hosts({1});
  const auto on = [&](int cores, int batch) {
    host.devices[0].per_node = cores;
    run.train.batch = batch;
    return predict_run(run, host).seconds;
  };
  const double one = on(4, 1).total();
  EXPECT_NEAR(on(1, 1).total() / one, 1, 0.1);     // one microbatch keeps one core busy
  EXPECT_NEAR(on(8, 1).total() / one, 0.5, 0.01);  // two cores each
  const StepSeconds two = on(2, 64), four = on(4, 64);
  EXPECT_GT(two.total(), 1.3 * four.total());
  EXPECT_LT(two.total(), 1.5 * four.total());  // those that wait for the last, which has the head, leave it their cores
  EXPECT_NEAR(on(1, 64).total(), 2 * two.total(), 0.05 * two.total());
}

// Ranks share the host's memory, and what its cores make is not more for being made by more ranks.
TEST(CoresOfRanks, CrowdsHaveTheHostsMemoryAndItsCores) {
  RunSpec run = llama();
  const Cluster host = hosts({2});
  for (const int ranks : {1, 2, 8}) {
    run.mesh = {.data = ranks};
    const Prediction found = predict_run(run, host);
    EXPECT_EQ(found.memory_bytes, static_cast<int64_t>(2e10 / ranks));
    const double tokens = run.train.batch * run.model.context;
    EXPECT_NEAR(found.tokens_per_second_per_device, tokens / found.step_seconds() / 2, 1e-6);
  }
}

// On fewer cores than there are ranks another replica computes meanwhile.
TEST(CoresOfRanks, TensorRanksWaitForNobodyInACrowd) {
  RunSpec run = llama();
  run.mesh = {.data = 2, .tensor = 2};
  Cluster host = hosts({2});
  const double alike = predict_run(run, host).step_seconds();
  host.devices[0].skew = 0.25;
  EXPECT_EQ(predict_run(run, host).step_seconds(), alike);
}

// A replica on each of two hosts, of which the second has a tenth of the rate.
TEST(CoresOfRanks, RanksAreDealtToHostsOfSeveralKinds) {
  RunSpec run = llama();
  run.mesh.data = 2;
  Cluster unlike = hosts({4, 4});
  const StepSeconds alike = predict_run(run, unlike).seconds;
  unlike.devices[1].peaks[0].flops /= 10;
  unlike.devices[1].memory_bytes_per_second /= 10;
  const Prediction found = predict_run(run, unlike);
  EXPECT_NEAR(found.seconds.compute, 10 * alike.compute, 1e-6 * found.seconds.compute);
  EXPECT_LT(found.mfu, 1);
}

// Two ranks on each host: those of the first have two cores each, those of the second share one.
TEST(CoresOfRanks, EachHostHasTheCoresOfItsKind) {
  RunSpec run = llama();
  run.mesh.data = 4;
  run.train.threads = 2;
  const double crowded = predict_run(run, hosts({4, 1})).step_seconds();
  EXPECT_NEAR(crowded, predict_run(run, hosts({1, 1})).step_seconds(), 0.01 * crowded);
  EXPECT_NEAR(predict_run(run, hosts({4, 4})).seconds.compute, crowded / 4, 0.05 * crowded);
  EXPECT_EQ(predict_run(run, hosts({4, 1})).memory_bytes, static_cast<int64_t>(1e10 / 2));
}

TEST(CoresOfRanks, AreOfAllKindsOrNone) {
  Cluster mixed = hosts({4, 4});
  EXPECT_TRUE(prediction_problems(llama(), mixed).empty());
  mixed.devices[1].shared_cores = false;
  ASSERT_EQ(prediction_problems(llama(), mixed).size(), 1u);
  EXPECT_EQ(prediction_problems(llama(), mixed)[0].key, "shared_cores");
}

// Exchanges inside a host are work of the cores that compute; those between hosts overlap.
TEST(CoresOfRanks, HideNoExchangesOfTheirHost) {
  RunSpec run = llama();
  run.mesh.data = 2;
  const auto exposed = [&](const Cluster& cluster, OverlapChoice overlap) {
    run.sync.overlap = overlap;
    return predict_run(run, cluster).seconds.data;
  };
  EXPECT_EQ(exposed(hosts({2}), OverlapChoice::On), exposed(hosts({2}), OverlapChoice::Off));
  EXPECT_LT(exposed(hosts({1, 1}), OverlapChoice::On), exposed(hosts({1, 1}), OverlapChoice::Off));
  run.sync.zero = 3;
  const double in_host = exposed(hosts({2}), OverlapChoice::On);
  Cluster devices = hosts({2});
  devices.devices[0].shared_cores = false;
  EXPECT_GT(in_host, 10 * exposed(devices, OverlapChoice::On));
}

}  // namespace
}  // namespace braid::plan::cores_of_ranks_test
