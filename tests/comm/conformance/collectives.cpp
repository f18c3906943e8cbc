// The guarantees of every backend's collectives, bit for bit.
#include <cmath>
#include <thread>
#include <vector>

#include "tests/comm/collective_checks.h"
#include "tests/comm/conformance.h"
#include "tests/support/shared_array.h"

namespace braid::comm::tests::collectives {
namespace {

std::vector<int64_t> sizes(const Backend& backend, int ranks, at::ScalarType type) {
  if (kTsan || (backend.is_dear && !full_run())) return {0, 1, 64, 1000, 20000};
  std::vector<int64_t> some = {0, 1, 2, 3, 7, 64, 1000, 4097};
  if (full_run() || ranks <= 3) some.push_back(65536);
  if (full_run() || (ranks == 3 && type == at::kFloat)) some.push_back(1 << 20);
  return some;
}

std::vector<int> group_sizes(const Backend& backend) {
  if (backend.is_dear && !full_run()) return {3};
  if (kTsan) return {2, 5};
  return full_run() ? std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8} : std::vector<int>{1, 2, 3, 5, 8};
}

template <class T>
void check_type(const Backend& backend, Communicator& group) {
  int salt = 0;
  for (int64_t size : sizes(backend, group.size(), type_of<T>())) {
    Case a_case{size, ++salt, cat(" of ", c10::toString(type_of<T>()), "[", size, "] on ", group.size(), " ranks")};
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) {
      check_all_reduce<T>(group, a_case, op);
      check_reduce_scatter<T>(group, a_case, op, Alias::No);
      check_reduce_scatter<T>(group, a_case, op, Alias::Yes);
    }
    check_moves<T>(group, a_case);
    group.queue().drain();
  }
}

template <class T>
void check_type(const Backend& backend) {
  for (const int ranks : group_sizes(backend)) {
    backend.run(ranks, [&](Communicator& group) { check_type<T>(backend, group); });
  }
}

TEST_P(Collectives, float32) { check_type<float>(GetParam()); }
TEST_P(Collectives, float64) { check_type<double>(GetParam()); }
TEST_P(Collectives, bfloat16) { check_type<c10::BFloat16>(GetParam()); }
TEST_P(Collectives, float16) { check_type<c10::Half>(GetParam()); }
TEST_P(Collectives, int64) { check_type<int64_t>(GetParam()); }

TEST_P(Collectives, bytes_and_int32_move_without_arithmetic) {
  GetParam().run(3, [](Communicator& group) {
    check_moves<uint8_t>(group, {1001, 1, " of bytes"});
    check_moves<int32_t>(group, {1001, 2, " of int32"});
    group.queue().drain();
  });
}

TEST_P(Collectives, many_in_flight_are_waited_for_in_reverse) {
  GetParam().run(4, [](Communicator& group) {
    constexpr int kMany = 60;
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < kMany; ++i) {
      tensors.push_back(empty<float>(i * 37));
      refill<float>(group.queue(), tensors[i], i, group.rank());
      works.push_back(group.all_reduce(tensors[i], ReduceOp::Sum));
    }
    for (int i = kMany - 1; i >= 0; --i) {
      works[i].wait_host();
      EXPECT_TRUE(works[i].done());
      EXPECT_TRUE(holds<float>(tensors[i], [=](int64_t j) { return expected_sum<float>(i, 4, j, ReduceOp::Sum); }));
    }
  });
}

TEST_P(Collectives, a_work_keeps_its_tensors_alive) {
  GetParam().run(3, [](Communicator& group) {
    at::Tensor out = empty<float>(3000);
    for (int round = 0; round < 20; ++round) {
      at::Tensor in = empty<float>(1000);
      refill<float>(group.queue(), in, round, group.rank());
      Work work = group.all_gather(out, in);
      in.reset();
      empty<float>(1000).fill_(-1);  // would land in the freed memory
      work.order_before(group.queue());
      expect<float>(group.queue(), out, "all_gather",
                    [=](int64_t i) { return value<float>(round, static_cast<int>(i / 1000), i % 1000); });
    }
    group.queue().drain();
  });
}

TEST_P(Collectives, polling_alone_makes_progress) {
  GetParam().run(2, [](Communicator& group) {
    at::Tensor tensor = empty<float>(100000);
    refill<float>(group.queue(), tensor, 5, group.rank());
    Work work = group.all_reduce(tensor, ReduceOp::Sum);
    while (!work.done()) std::this_thread::yield();
    EXPECT_TRUE(holds<float>(tensor, [](int64_t i) { return expected_sum<float>(5, 2, i, ReduceOp::Sum); }));
  });
}

TEST_P(Collectives, no_rank_passes_a_barrier_before_all_have_come) {
  SharedArray<int> come;
  GetParam().run(5, [&](Communicator& group) {
    for (int round = 1; round <= 50; ++round) {
      group.queue().enqueue([&come] { ++come[0]; });
      Work work = group.barrier();
      work.order_before(group.queue());
      group.queue().enqueue([&come, round] { EXPECT_GE(come[0].load(), 5 * round); });
      group.queue().drain();
    }
  });
}

TEST_P(Collectives, maximum_and_minimum_are_nan_where_any_input_is) {
  GetParam().run(3, [](Communicator& group) {
    for (int where = 0; where < 3; ++where) {
      for (ReduceOp op : {ReduceOp::Max, ReduceOp::Min}) {
        at::Tensor tensor = empty<float>(40);
        float mine = group.rank() == where ? std::nanf("") : 1.0f;
        group.queue().enqueue([=] { fill<float>(tensor, [=](int64_t) { return mine; }); });
        group.all_reduce(tensor, op).wait_host();
        for (int64_t i = 0; i < 40; ++i) EXPECT_TRUE(std::isnan(tensor.const_data_ptr<float>()[i])) << where;
      }
    }
  });
}

}  // namespace
}  // namespace braid::comm::tests::collectives
