// The guarantees of every backend's collectives, bit for bit: one suite, instantiated for each backend and kind of
// queue. A backend is a type with `static void run(int num_ranks, const std::function<void(Communicator&)>& body)`.
//
// Inputs are written and outputs read by tasks of the rank's queue, so that a backend which looks at a tensor before
// the queue has reached the call, or lets the queue go on before the result is there, is caught on a queue that lags.
#pragma once

#include <cmath>
#include <functional>
#include <thread>

#include "tests/comm/values.h"
#include "tests/support/shared_array.h"

namespace braid::comm::tests {

template <class Backend>
class Collectives : public testing::Test {};
TYPED_TEST_SUITE_P(Collectives);

struct Case {
  int64_t size;
  int salt;
  std::string text;
};

// Backends whose worlds are dear to start say so, and are looked at in fewer of them.
template <class Backend>
constexpr bool is_dear() {
  return requires { Backend::kDear; };
}

template <class Backend>
std::vector<int64_t> sizes(int ranks, at::ScalarType type) {
  if (kTsan || (is_dear<Backend>() && !full_run())) return {0, 1, 64, 1000, 20000};
  std::vector<int64_t> some = {0, 1, 2, 3, 7, 64, 1000, 4097};
  if (full_run() || ranks <= 3) some.push_back(65536);
  if (full_run() || (ranks == 3 && type == at::kFloat)) some.push_back(1 << 20);
  return some;
}

template <class Backend>
std::vector<int> group_sizes() {
  if (is_dear<Backend>() && !full_run()) return {3};
  if (kTsan) return {2, 5};
  return full_run() ? std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8} : std::vector<int>{1, 2, 3, 5, 8};
}

template <class T>
void refill(Queue& queue, const at::Tensor& tensor, int salt, int rank) {
  queue.enqueue([=] { fill<T>(tensor, [=](int64_t i) { return value<T>(salt, rank, i); }); });
}

template <class T>
void spoil(Queue& queue, const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;  // its pointer may be null
  queue.enqueue([=] { std::memset(tensor.mutable_data_ptr<T>(), 0x7e, tensor.nbytes()); });
}

// From now on in the queue's order, element i of `tensor` is function(i).
template <class T, class Function>
void expect(Queue& queue, const at::Tensor& tensor, const std::string& what, const Function& function) {
  queue.enqueue([=] { EXPECT_TRUE(holds<T>(tensor, function)) << what; });
}

template <class T>
void check_all_reduce(Communicator& group, const Case& a_case, ReduceOp op) {
  int n = group.size(), salt = a_case.salt;
  at::Tensor tensor = empty<T>(a_case.size);
  refill<T>(group.queue(), tensor, salt, group.rank());
  group.all_reduce(tensor, op).order_before(group.queue());
  expect<T>(group.queue(), tensor, cat("all_reduce ", static_cast<int>(op), a_case.text),
            [=](int64_t i) { return expected_sum<T>(salt, n, i, op); });
}

enum class Alias { No, Yes };

template <class T>
void check_reduce_scatter(Communicator& group, const Case& a_case, ReduceOp op, Alias alias) {
  int n = group.size(), salt = a_case.salt;
  int64_t begin = group.rank() * a_case.size;
  at::Tensor in = empty<T>(n * a_case.size);
  at::Tensor out = alias == Alias::Yes ? in.narrow(0, begin, a_case.size) : empty<T>(a_case.size);
  refill<T>(group.queue(), in, salt, group.rank());
  if (alias == Alias::No) spoil<T>(group.queue(), out);
  group.reduce_scatter(out, in, op).order_before(group.queue());
  expect<T>(group.queue(), out, cat("reduce_scatter ", static_cast<int>(op), a_case.text),
            [=](int64_t i) { return expected_sum<T>(salt, n, begin + i, op); });
  group.queue().enqueue([in] {});  // goes after its view, whose hold on it ThreadSanitizer cannot see
}

template <class T>
void check_all_gather(Communicator& group, const Case& a_case, Alias alias) {
  int salt = a_case.salt;
  int64_t size = a_case.size;
  at::Tensor out = empty<T>(group.size() * size);
  spoil<T>(group.queue(), out);
  at::Tensor in = alias == Alias::Yes ? out.narrow(0, group.rank() * size, size) : empty<T>(size);
  refill<T>(group.queue(), in, salt, group.rank());
  group.all_gather(out, in).order_before(group.queue());
  expect<T>(group.queue(), out, cat("all_gather", a_case.text),
            [=](int64_t i) { return value<T>(salt, static_cast<int>(i / size), i % size); });
}

template <class T>
void check_all_to_all(Communicator& group, const Case& a_case) {
  int salt = a_case.salt, rank = group.rank();
  int64_t size = a_case.size;
  at::Tensor in = empty<T>(group.size() * size), out = empty<T>(group.size() * size);
  refill<T>(group.queue(), in, salt, rank);
  spoil<T>(group.queue(), out);
  group.all_to_all(out, in).order_before(group.queue());
  expect<T>(group.queue(), out, cat("all_to_all", a_case.text),
            [=](int64_t i) { return value<T>(salt, static_cast<int>(i / size), rank * size + i % size); });
}

template <class T>
void check_broadcast(Communicator& group, const Case& a_case, int root) {
  int salt = a_case.salt;
  at::Tensor tensor = empty<T>(a_case.size);
  refill<T>(group.queue(), tensor, salt, group.rank());
  group.broadcast(tensor, root).order_before(group.queue());
  expect<T>(group.queue(), tensor, cat("broadcast", a_case.text), [=](int64_t i) { return value<T>(salt, root, i); });
}

// To the next rank, from the one before; to itself in a group of one.
template <class T>
void check_ring(Communicator& group, const Case& a_case) {
  int n = group.size(), salt = a_case.salt, next = (group.rank() + 1) % n, last = (group.rank() + n - 1) % n;
  at::Tensor out = empty<T>(a_case.size), in = empty<T>(a_case.size);
  refill<T>(group.queue(), out, salt, group.rank());
  spoil<T>(group.queue(), in);
  P2p both[] = {{P2p::Kind::Send, out, next, 3}, {P2p::Kind::Recv, in, last, 3}};
  group.batch(both).order_before(group.queue());
  expect<T>(group.queue(), in, cat("ring", a_case.text), [=](int64_t i) { return value<T>(salt, last, i); });
}

template <class T>
void check_moves(Communicator& group, const Case& a_case) {
  check_all_gather<T>(group, a_case, Alias::No);
  check_all_gather<T>(group, a_case, Alias::Yes);
  check_all_to_all<T>(group, a_case);
  check_broadcast<T>(group, a_case, 0);
  check_broadcast<T>(group, a_case, group.size() - 1);
  check_ring<T>(group, a_case);
}

template <class T, class Backend>
void check_type(Communicator& group) {
  int salt = 0;
  for (int64_t size : sizes<Backend>(group.size(), type_of<T>())) {
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

TYPED_TEST_P(Collectives, float32) {
  for (int ranks : group_sizes<TypeParam>()) TypeParam::run(ranks, check_type<float, TypeParam>);
}
TYPED_TEST_P(Collectives, float64) {
  for (int ranks : group_sizes<TypeParam>()) TypeParam::run(ranks, check_type<double, TypeParam>);
}
TYPED_TEST_P(Collectives, bfloat16) {
  for (int ranks : group_sizes<TypeParam>()) TypeParam::run(ranks, check_type<c10::BFloat16, TypeParam>);
}
TYPED_TEST_P(Collectives, float16) {
  for (int ranks : group_sizes<TypeParam>()) TypeParam::run(ranks, check_type<c10::Half, TypeParam>);
}
TYPED_TEST_P(Collectives, int64) {
  for (int ranks : group_sizes<TypeParam>()) TypeParam::run(ranks, check_type<int64_t, TypeParam>);
}

TYPED_TEST_P(Collectives, bytes_and_int32_move_without_arithmetic) {
  TypeParam::run(3, [](Communicator& group) {
    check_moves<uint8_t>(group, {1001, 1, " of bytes"});
    check_moves<int32_t>(group, {1001, 2, " of int32"});
    group.queue().drain();
  });
}

TYPED_TEST_P(Collectives, many_in_flight_are_waited_for_in_reverse) {
  TypeParam::run(4, [](Communicator& group) {
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

TYPED_TEST_P(Collectives, a_work_keeps_its_tensors_alive) {
  TypeParam::run(3, [](Communicator& group) {
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

TYPED_TEST_P(Collectives, polling_alone_makes_progress) {
  TypeParam::run(2, [](Communicator& group) {
    at::Tensor tensor = empty<float>(100000);
    refill<float>(group.queue(), tensor, 5, group.rank());
    Work work = group.all_reduce(tensor, ReduceOp::Sum);
    while (!work.done()) std::this_thread::yield();
    EXPECT_TRUE(holds<float>(tensor, [](int64_t i) { return expected_sum<float>(5, 2, i, ReduceOp::Sum); }));
  });
}

TYPED_TEST_P(Collectives, no_rank_passes_a_barrier_before_all_have_come) {
  SharedArray<int> come;
  TypeParam::run(5, [&](Communicator& group) {
    for (int round = 1; round <= 50; ++round) {
      group.queue().enqueue([&come] { ++come[0]; });
      Work work = group.barrier();
      work.order_before(group.queue());
      group.queue().enqueue([&come, round] { EXPECT_GE(come[0].load(), 5 * round); });
      group.queue().drain();
    }
  });
}

TYPED_TEST_P(Collectives, maximum_and_minimum_are_nan_where_any_input_is) {
  TypeParam::run(3, [](Communicator& group) {
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

REGISTER_TYPED_TEST_SUITE_P(Collectives, float32, float64, bfloat16, float16, int64,
                            bytes_and_int32_move_without_arithmetic, many_in_flight_are_waited_for_in_reverse,
                            a_work_keeps_its_tensors_alive, polling_alone_makes_progress,
                            no_rank_passes_a_barrier_before_all_have_come,
                            maximum_and_minimum_are_nan_where_any_input_is);

}  // namespace braid::comm::tests
