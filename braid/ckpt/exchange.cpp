#include "braid/ckpt/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors) {
  std::vector<ListedTensor> listing;
  for (const auto& [name, placement, local] : tensors) {
    check(local.sizes().equals(placement.local_shape) && local.is_contiguous(),
          cat("tensor ", name, " is contiguous and has its placement's local shape"));
    ListedTensor item{{name, element_type(local.scalar_type()), placement.global_shape}, {}};
    for (const mesh::Piece& piece : placement.pieces) {
      if (!piece.global.empty()) item.boxes.push_back(piece.global);
    }
    listing.push_back(std::move(item));
  }
  return listing;
}

template <class Pack>
void members(Pack& pack, ListedTensor& item) {
  pack(item.info.name, item.info.type, item.info.shape, item.boxes);
}

std::string packed(const std::vector<ListedTensor>& listing) { return braid::packed(listing); }

std::vector<ListedTensor> unpacked_listing(std::string_view text) {
  auto listing = unpacked<std::vector<ListedTensor>>(text);
  check(listing.has_value(), "a listing is as long as it says");
  return std::move(*listing);
}

namespace {

using nlohmann::json;

std::string outcome_of(const std::function<void()>& step) {
  json outcome;
  try {
    step();
    return {};
  } catch (const IoError& error) {
    outcome = {{"path", error.path()}, {"offset", error.offset()}, {"why", error.why()}};
  } catch (const ConfigError& error) {
    for (const Problem& each : error.problems())
      outcome["problems"].push_back({each.key, each.value, each.rule, each.nearest, each.place});
  } catch (const RunError& error) {
    outcome = {{"failed", error.what()}};
  } catch (const std::bad_alloc&) {
    outcome = {{"failed", "there is no memory for it"}};
  } catch (const c10::OutOfMemoryError&) {
    outcome = {{"failed", "there is no memory of the device for it"}};
  }
  return outcome.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void all_or_none(const std::function<void()>& step, Communicator& world) {
  std::vector<Problem> problems;
  for (const std::string& text : all_gather_text(outcome_of(step), at::kCPU, world)) {
    if (text.empty()) continue;
    const json outcome = json::parse(text);
    if (outcome.contains("path")) throw IoError(outcome["path"], outcome["offset"], outcome["why"]);
    if (outcome.contains("failed")) throw RunError(outcome["failed"]);
    for (const json& each : outcome["problems"]) {
      const Problem problem{each[0], each[1], each[2], each[3], each[4]};
      if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

namespace {

using Json = nlohmann::json;

at::Tensor packed(const std::string& text, int64_t bytes) {
  const auto tensor = at::zeros({bytes}, at::kByte);
  if (!text.empty()) std::memcpy(tensor.data_ptr(), text.data(), text.size());
  return tensor;
}

std::string unpacked(const at::Tensor& tensor, int64_t bytes) {
  const auto host = tensor.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), static_cast<size_t>(bytes)};
}

// By rank, on the host.
at::Tensor all_lengths(const std::string& mine, at::Device device, Communicator& world) {
  const auto length = at::full({1}, static_cast<int64_t>(mine.size()), at::TensorOptions(at::kLong).device(device));
  const auto lengths = at::empty({world.size()}, length.options());
  world.all_gather(lengths, length).wait_host();
  return lengths.cpu();
}

constexpr int kTextTag = 0x636B;

}  // namespace

std::vector<std::string> texts_at_rank_0(const std::string& mine, at::Device device, Communicator& world) {
  const auto lengths = all_lengths(mine, device, world);
  const auto* length = lengths.const_data_ptr<int64_t>();
  if (world.rank() > 0) {
    const P2p send{P2p::Kind::Send, packed(mine, length[world.rank()]).to(device), 0, kTextTag};
    if (!mine.empty()) world.batch({&send, 1}).wait_host();
    return {};
  }
  std::vector<P2p> transfers;
  for (int rank = 1; rank < world.size(); ++rank) {
    const auto bytes = at::empty({length[rank]}, at::TensorOptions(at::kByte).device(device));
    if (length[rank] > 0) transfers.push_back({P2p::Kind::Recv, bytes, rank, kTextTag});
  }
  if (!transfers.empty()) world.batch(transfers).wait_host();
  std::vector<std::string> texts(static_cast<size_t>(world.size()));
  texts[0] = mine;
  for (const P2p& each : transfers) texts[static_cast<size_t>(each.peer)] = unpacked(each.tensor, length[each.peer]);
  return texts;
}

std::vector<std::string> all_gather_text(const std::string& mine, at::Device device, Communicator& world) {
  const int size = world.size();
  const auto lengths_host = all_lengths(mine, device, world);
  const int64_t longest = lengths_host.max().item<int64_t>();
  if (longest == 0) return std::vector<std::string>(static_cast<size_t>(size));

  const auto bytes = packed(mine, longest).to(device);
  const auto all = at::empty({size, longest}, bytes.options());
  world.all_gather(all.view({-1}), bytes).wait_host();
  std::vector<std::string> texts;
  for (int rank = 0; rank < size; ++rank) {
    texts.push_back(unpacked(all.select(0, rank), lengths_host.const_data_ptr<int64_t>()[rank]));
  }
  return texts;
}

std::string text_of_rank_0(const std::string& mine, at::Device device, Communicator& world) {
  const auto length = at::full({1}, static_cast<int64_t>(mine.size()), at::TensorOptions(at::kLong).device(device));
  world.broadcast(length, 0).wait_host();
  const auto count = length.item<int64_t>();
  if (count == 0) return {};
  const auto bytes = (world.rank() == 0 ? packed(mine, count) : at::zeros({count}, at::kByte)).to(device);
  world.broadcast(bytes, 0).wait_host();
  return unpacked(bytes, count);
}

std::string fault_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const IoError& error) {
    const Json fault = {error.path(), error.offset(), error.why()};
    return fault.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return {};
}

void throw_fault(const std::string& fault) {
  const auto json = Json::parse(fault);
  throw IoError(json[0], json[1], json[2]);
}

}  // namespace braid::ckpt
