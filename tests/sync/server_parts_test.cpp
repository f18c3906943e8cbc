// The parts of a parameter server by themselves: ranges, clocks, sequences, sums of rows, rules, messages that are cut.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/sync/server/key_ranges.h"
#include "braid/sync/server/protocol.h"
#include "braid/sync/server/row_sum.h"
#include "braid/sync/server/sequence_book.h"
#include "braid/sync/server/staleness_histogram.h"
#include "braid/sync/server/whole_state.h"
#include "braid/sync/server/worker_clocks.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_parts_test {
namespace {

using State = WorkerClocks::State;

at::Tensor index_of(const std::vector<int64_t>& rows) {
  at::Tensor index = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  std::copy(rows.begin(), rows.end(), index.mutable_data_ptr<int64_t>());
  return index;
}

TEST(KeyRanges, CoverEveryKeyOnceInWholeBlocks) {
  for (const int64_t keys : {0, 1, 7, 1024, 5000}) {
    for (const int servers : {1, 2, 3, 8}) {
      for (const int64_t align : {1, 64}) {
        const KeyRanges ranges(keys, servers, align);
        int64_t end = 0, smallest = keys, largest = 0;
        for (int server = 0; server < servers; ++server) {
          const KeyRange range = ranges.of(server);
          EXPECT_EQ(range.begin, end);
          EXPECT_TRUE(range.begin % align == 0 || range.begin == keys);
          end = range.end;
          smallest = std::min(smallest, range.size());
          largest = std::max(largest, range.size());
        }
        EXPECT_EQ(end, keys);
        EXPECT_LE(largest - smallest, 2 * align - 1);
      }
    }
  }
  EXPECT_THROW(KeyRanges(5, 1).of(1), InternalError);
}

TEST(WorkerClocks, OnlyTheLiveCountAndLatecomersStartWithTheSlowest) {
  WorkerClocks clocks(3, 2);
  EXPECT_EQ(clocks.state(2), State::Expected);
  for (int i = 0; i < 5; ++i) clocks.tick(0);
  for (int i = 0; i < 3; ++i) clocks.tick(1);
  EXPECT_EQ(clocks.slowest(), 3);
  clocks.join(2);
  EXPECT_EQ(clocks.clock(2), 3);
  clocks.move_ahead(2, 4);
  clocks.end(1);
  EXPECT_EQ(clocks.slowest(), 4);
  clocks.end(2);
  EXPECT_EQ(clocks.slowest(), 5);
  EXPECT_FALSE(clocks.all_ended());
  clocks.tick(0);
  clocks.end(0);
  EXPECT_TRUE(clocks.all_ended());
  EXPECT_EQ(clocks.slowest(), 6);
  clocks.join(1);
  EXPECT_EQ(clocks.clock(1), 6);
  EXPECT_THROW(clocks.join(1), InternalError);
}

TEST(SequenceBook, GivesEachOnceInOrder) {
  SequenceBook<int> book(3);
  EXPECT_EQ(book.accept(2, 20), Arrival::Repeated);
  EXPECT_EQ(book.accept(5, 50), Arrival::Kept);
  EXPECT_EQ(book.accept(5, 51), Arrival::Repeated);
  EXPECT_FALSE(book.pop().has_value());
  EXPECT_EQ(book.accept(4, 40), Arrival::Kept);
  EXPECT_FALSE(book.pop().has_value());
  EXPECT_EQ(book.accept(3, 30), Arrival::Kept);
  for (const int expected : {30, 40, 50}) EXPECT_EQ(book.pop(), expected);
  EXPECT_FALSE(book.pop().has_value());
  EXPECT_EQ(book.next(), 6);
  EXPECT_EQ(book.accept(4, 41), Arrival::Repeated);
}

TEST(StalenessHistogram, CountsAndMeans) {
  StalenessHistogram one, two;
  EXPECT_EQ(one.mean(), 0);
  for (const int64_t updates : {0, 2, 2}) one.add(updates);
  two.add(4);
  two.add(one);
  EXPECT_EQ(two.counts(), (std::vector<int64_t>{1, 0, 2, 0, 1}));
  EXPECT_EQ(two.mean(), 2);
  EXPECT_EQ(two.most(), 4);
}

TEST(RowSum, AddsRowsByNumberInTheOrderTheyCome) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    RowSum sum(type, 2);
    const at::Tensor first = values({3, 2}, type, 1), second = values({2, 2}, type, 2);
    sum.add(index_of({7, 2, 7}), first);
    sum.add(index_of({2, 9}), second);
    const TableRows rows = sum.take();
    const auto a = doubles(first), b = doubles(second), got = doubles(rows.values);
    EXPECT_EQ(doubles(rows.index), (std::vector<double>{2, 7, 9}));
    const auto rounded = [&](double x) { return type == at::kFloat ? static_cast<double>(static_cast<float>(x)) : x; };
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(got[j], rounded(a[2 + j] + b[j]));
      EXPECT_EQ(got[2 + j], rounded(a[j] + a[4 + j]));
      EXPECT_EQ(got[4 + j], b[2 + j]);
    }
    EXPECT_EQ(sum.take().index.numel(), 0);
  }
}

TEST(ServerShard, AppliesTheMeanByEachRule) {
  for (const auto kind : {OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::AdamW}) {
    const optim::ElementRule rule{.kind = kind, .weight_decay = 0.1};
    const KeyShape shape{at::kDouble, 5000, {}};
    ServerShard shard(shape, rule, {{100, 200}});
    shard.set_state(initial_state(shape, rule));
    const auto start = doubles(shard.snapshot());
    Reference decayed{rule, 0.01, 0.1, start, std::vector<double>(5000), std::vector<double>(5000)};
    Reference plain = decayed;
    plain.decay = 0;
    for (int64_t t = 1; t <= 5; ++t) {
      const std::vector<KeyedTensors> pushes = {gradient(shape, 0, t), gradient(shape, 1, t), gradient(shape, 2, t)};
      std::vector<double> mean(5000);
      for (size_t i = 0; i < mean.size(); ++i) {
        for (const auto& push : pushes) mean[i] += push.dense.const_data_ptr<double>()[i] / 3;
      }
      shard.apply(pushes, 0.01);
      decayed.step(mean, t);
      plain.step(mean, t);
    }
    const auto got = doubles(shard.snapshot());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], (100 <= i && i < 200 ? plain : decayed).weight[i], 1e-12) << i;
    }
  }
}

TEST(ServerShard, ASnapshotIsNeverWrittenAgain) {
  const KeyShape shape{at::kFloat, 10, {}};
  ServerShard shard(shape, {});
  const at::Tensor before = shard.snapshot();
  EXPECT_TRUE(before.is_same(shard.snapshot()));
  const KeyedTensors one = gradient(shape, 0, 0);
  shard.apply({&one, 1}, 1);
  EXPECT_EQ(doubles(before), std::vector<double>(10));
  EXPECT_NE(doubles(shard.snapshot()), std::vector<double>(10));
}

// Rows that nobody touches cost nothing and stay; where all are touched, or the rule leaves zeros alone, a table is the
// same bits as flat parameters.
TEST(ServerShard, SparseEqualsDense) {
  constexpr int64_t kRows = 40, kWidth = 3;
  for (const auto kind : {OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::AdamW}) {
    const optim::ElementRule rule{.kind = kind, .weight_decay = kind == OptimizerKind::AdamW ? 0.1 : 0};
    const KeyShape table{at::kFloat, 0, {{kRows, kWidth}}}, flat{at::kFloat, kRows * kWidth, {}};
    ServerShard sparse(table, rule), dense(flat, rule);
    for (int64_t clock = 0; clock < 4; ++clock) {
      std::vector<KeyedTensors> some, all;
      for (int worker = 0; worker < 3; ++worker) {
        KeyedTensors push = gradient(table, worker, clock);
        if (kind == OptimizerKind::AdamW) {
          std::vector<int64_t> every(kRows);
          for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<int64_t>(i);
          push.rows[0] = {index_of(every), values({kRows, kWidth}, at::kFloat, gradient_key(worker, clock))};
        }
        at::Tensor whole = zero_state(flat, {}).elements[0];
        for (int64_t i = 0; i < push.rows[0].index.numel(); ++i) {
          const int64_t row = push.rows[0].index.const_data_ptr<int64_t>()[i];
          std::copy_n(push.rows[0].values.const_data_ptr<float>() + i * kWidth, kWidth,
                      whole.mutable_data_ptr<float>() + row * kWidth);
        }
        some.push_back(push);
        all.push_back({whole, {}});
      }
      sparse.apply(some, 0.1);
      dense.apply(all, 0.1);
    }
    EXPECT_EQ(doubles(sparse.state().tables[0].values[0]), doubles(dense.snapshot()));
  }
}

TEST(ServerShard, ARowHasStepsOfItsOwn) {
  const optim::ElementRule rule{.kind = OptimizerKind::AdamW, .weight_decay = 0.1};
  const KeyShape table{at::kDouble, 0, {{4, 1}}};
  ServerShard shard(table, rule);
  shard.set_state(initial_state(table, rule));
  const auto start = doubles(shard.state().tables[0].values[0]);
  for (int clock = 0; clock < 3; ++clock) {
    const KeyedTensors push{{}, {{index_of({clock == 0 ? int64_t{1} : int64_t{2}}), values({1, 1}, at::kDouble, 3)}}};
    shard.apply({&push, 1}, 0.1);
  }
  EXPECT_EQ(doubles(shard.state().tables[0].row_steps), (std::vector<double>{0, 1, 2, 0}));
  Reference one{rule, 0.1, 0.1, {start[1]}, {0}, {0}}, two{rule, 0.1, 0.1, {start[2]}, {0}, {0}};
  const auto g = doubles(values({1, 1}, at::kDouble, 3));
  one.step(g, 1);
  for (const int64_t t : {1, 2}) two.step(g, t);
  const auto end = doubles(shard.state().tables[0].values[0]);
  EXPECT_EQ(end[0], start[0]);
  EXPECT_NEAR(end[1], one.weight[0], 1e-15);
  EXPECT_NEAR(end[2], two.weight[0], 1e-15);
}

TEST(Protocol, AMessageThatIsNotWholeReadsAsNothing) {
  const KeyShape shape{at::kFloat, 100, {{20, 2}, {5, 1}}};
  ChannelMessage whole = message_of({1, 2, 3, 4, 5});
  braid::pack(gradient(shape, 1, 1), RowContent::IndexAndValues, whole);
  const auto reads = [&](const ChannelMessage& message) {
    return unpacked(message, Envelope::kNumFields, RowContent::IndexAndValues, shape).has_value();
  };
  ASSERT_TRUE(reads(whole));
  for (size_t i = 0; i < whole.tensors.size(); ++i) {
    ChannelMessage cut = whole;
    at::Tensor& tensor = cut.tensors[i];
    tensor = tensor.reshape({-1}).narrow(0, 0, tensor.numel() - 1);
    EXPECT_FALSE(reads(cut)) << i;
  }
  for (size_t i = 0; i < whole.header.size(); ++i) {
    ChannelMessage cut = whole;
    cut.header.resize(i);
    EXPECT_FALSE(reads(cut)) << i;
  }
  ChannelMessage more = whole, fewer = whole, other = whole;
  more.tensors.push_back(more.tensors[0]);
  fewer.tensors.pop_back();
  other.tensors[0] = values({100}, at::kDouble, 1);
  for (const auto& wrong : {more, fewer, other}) EXPECT_FALSE(reads(wrong));
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{3, 2}, {2, 2}, {-1}, {20}}) {
    ChannelMessage wrong = message_of({});
    KeyedTensors push{{}, {{index_of(rows), values({static_cast<int64_t>(rows.size()), 2}, at::kFloat, 1)}, {}}};
    braid::pack(push, RowContent::IndexAndValues, wrong);
    EXPECT_FALSE(reads(wrong));
  }
}

TEST(WholeState, IsThatOfOneServerWhateverTheirNumber) {
  const optim::ElementRule rule{.kind = OptimizerKind::AdamW};
  const KeyShape shape{at::kFloat, 5000, {{11, 3}}};
  ShardState state = initial_state(shape, rule);
  state.elements[1] = values({5000}, at::kFloat, 40);
  state.num_steps = 7;
  for (const int servers : {1, 2, 3, 12}) {
    const KeyShares shares(shape, servers);
    ShardState whole = zero_state(shape, rule);
    whole.num_steps = 8;
    for (int server = 0; server < servers; ++server)
      add_part(shares, server, part_of_state(shares, rule, state, server), whole);
    EXPECT_EQ(numbers(whole), numbers(state));
  }
}

}  // namespace
}  // namespace braid::sync::server::tests::server_parts_test
