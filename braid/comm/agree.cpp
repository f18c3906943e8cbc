// The name of an agreement is hashed to a number below 2^40, so that its sum is exact in float64 for up to 8192 ranks.
#include "braid/comm/agree.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"

namespace braid::comm {
namespace {

constexpr int kTextTag = 0x6167;

int64_t number_of(std::string_view what) {
  return static_cast<int64_t>(digest_of(DigestKind::Xxh3, what) & ((uint64_t{1} << 40) - 1));
}

[[noreturn]] void part(Communicator& group, std::string_view what) {
  group.abort(cat("agrees on ", what, " with ", group.name(), " where another rank agrees on something else"));
  group.barrier().wait_host();  // throws
  throw InternalError("an aborted group has a failure");
}

at::Tensor tensor_of(const std::string& text, int64_t bytes) {
  const at::Tensor tensor = at::zeros({bytes}, at::kByte);
  if (!text.empty()) std::memcpy(tensor.mutable_data_ptr(), text.data(), text.size());
  return tensor;
}

std::string text_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.numel())};
}

// Returns the text after the name of the agreement. Aborts the group if the name differs.
std::string named_text(Communicator& host, std::string_view what, const at::Tensor& message) {
  std::string text = text_of(message);
  if (!text.starts_with(packed(number_of(what)))) part(host, what);
  return text.substr(sizeof(int64_t));
}

}  // namespace

template <Agreeable T>
std::vector<T> agree(Communicator& group, std::string_view what, std::vector<T> mine, ReduceOp op) {
  if (group.size() == 1) return mine;
  const CallName call(what);
  Communicator& host = group.host();
  const size_t count = mine.size();
  const auto name = static_cast<T>(number_of(what));
  mine.insert(mine.end(), {name, -name});
  const at::Tensor numbers = at::empty({std::ssize(mine)}, c10::CppTypeToScalarType<T>::value);
  T* const values = numbers.mutable_data_ptr<T>();
  std::ranges::copy(mine, values);
  host.all_reduce(numbers, op).wait_host();
  const T expected = op == ReduceOp::Sum ? name * static_cast<T>(host.size()) : name;
  if (values[count] != expected || values[count + 1] != -expected) part(host, what);
  return {values, values + count};
}
template std::vector<int64_t> agree(Communicator&, std::string_view, std::vector<int64_t>, ReduceOp);
template std::vector<double> agree(Communicator&, std::string_view, std::vector<double>, ReduceOp);

std::vector<std::string> gather_equally_long(Communicator& group, std::string_view what, const std::string& mine) {
  if (group.size() == 1) return {mine};
  const CallName call(what);
  Communicator& host = group.host();
  const std::string message = packed(number_of(what)) + mine;
  const auto bytes = static_cast<int64_t>(message.size());
  const at::Tensor all = at::empty({host.size(), bytes}, at::kByte);
  host.all_gather(all, tensor_of(message, bytes)).wait_host();
  std::vector<std::string> texts;
  for (int rank = 0; rank < host.size(); ++rank) texts.push_back(named_text(host, what, all[rank]));
  return texts;
}

std::string broadcast_equally_long(Communicator& group, std::string_view what, const std::string& mine, int root) {
  if (group.size() == 1) return mine;
  const CallName call(what);
  Communicator& host = group.host();
  const std::string text = packed(number_of(what)) + mine;
  const at::Tensor message = tensor_of(text, static_cast<int64_t>(text.size()));
  host.broadcast(message, root).wait_host();
  return named_text(host, what, message);
}

std::vector<std::string> gather_texts(Communicator& group, std::string_view what, const std::string& mine) {
  if (group.size() == 1) return {mine};
  const CallName call(what);
  Communicator& host = group.host();
  const auto lengths = gather(host, what, std::ssize(mine));
  const int64_t longest = std::ranges::max(lengths);
  std::vector<std::string> texts(lengths.size());
  if (longest == 0) return texts;
  const at::Tensor all = at::empty({host.size(), longest}, at::kByte);
  host.all_gather(all, tensor_of(mine, longest)).wait_host();
  for (int rank = 0; rank < host.size(); ++rank) {
    const auto place = static_cast<size_t>(rank);
    texts[place] = text_of(all[rank].narrow(0, 0, lengths[place]));
  }
  return texts;
}

std::vector<std::string> gather_texts_at_rank_0(Communicator& group, std::string_view what, const std::string& mine) {
  if (group.size() == 1) return {mine};
  const CallName call(what);
  Communicator& host = group.host();
  const auto lengths = gather(host, what, std::ssize(mine));
  std::vector<P2p> transfers;
  if (host.rank() > 0) {
    if (!mine.empty()) transfers.push_back({P2p::Kind::Send, tensor_of(mine, std::ssize(mine)), 0, kTextTag});
    host.batch(transfers).wait_host();
    return {};
  }
  for (int rank = 1; rank < host.size(); ++rank) {
    const int64_t bytes = lengths[static_cast<size_t>(rank)];
    if (bytes > 0) transfers.push_back({P2p::Kind::Recv, at::empty({bytes}, at::kByte), rank, kTextTag});
  }
  host.batch(transfers).wait_host();
  std::vector<std::string> texts(lengths.size());
  texts[0] = mine;
  for (const P2p& each : transfers) texts[static_cast<size_t>(each.peer)] = text_of(each.tensor);
  return texts;
}

std::string broadcast_text(Communicator& group, std::string_view what, const std::string& mine, int root) {
  if (group.size() == 1) return mine;
  const CallName call(what);
  Communicator& host = group.host();
  const auto bytes = broadcast(host, what, std::ssize(mine), root);
  if (bytes == 0) return {};
  const at::Tensor text = tensor_of(host.rank() == root ? mine : std::string(), bytes);
  host.broadcast(text, root).wait_host();
  return text_of(text);
}

}  // namespace braid::comm
