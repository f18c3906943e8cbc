// Checks of single collectives, bit for bit.
//
// Inputs are written and outputs read by tasks of the rank's queue, so that a backend which looks at a tensor before
// the queue has reached the call, or lets the queue go on before the result is there, is caught on a queue that lags.
#pragma once

#include <cstring>
#include <string>

#include "tests/comm/values.h"

namespace braid::comm::tests {

struct Case {
  int64_t size;
  int salt;
  std::string text;
};

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

}  // namespace braid::comm::tests
