// Listings as JSON, the plan from all of them, and one batch of transfers per tensor.
#include "braid/ckpt/gather.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

using Json = nlohmann::json;

constexpr int kTag = 0x636B;  // of every transfer here

at::Device device_of(const std::vector<PlacedTensor>& tensors) {
  return tensors.empty() ? at::Device(at::kCPU) : tensors[0].local.device();
}

Json boxes(const Placement& placement) {
  Json list = Json::array();
  for (const auto& piece : placement.pieces) list.push_back({piece.global.begin, piece.global.end});
  return list;
}

// [[name, type, shape, [[begin, end], ...]], ...]
std::string listing(const std::vector<PlacedTensor>& tensors) {
  Json list = Json::array();
  for (const auto& [name, placement, local] : tensors) {
    check(local.sizes().equals(placement.local_shape) && local.is_contiguous(),
          cat("tensor ", name, " is contiguous and has its placement's local shape"));
    list.push_back({name, element_type(local.scalar_type()), placement.global_shape, boxes(placement)});
  }
  return list.dump();
}

void add_sources(GatheredTensor& tensor, const Json& boxes, int rank) {
  for (const auto& ends : boxes) {
    Box box{ends[0].get<Index>(), ends[1].get<Index>()};
    const auto equal = [&](const BoxSource& source) { return source.box == box; };
    if (box.empty() || std::any_of(tensor.sources.begin(), tensor.sources.end(), equal)) continue;
    for (const auto& source : tensor.sources) {
      check(intersection(source.box, box).empty(), cat("tensor ", tensor.info.name, ": boxes of ranks ", source.rank,
                                                       " and ", rank, " are equal or disjoint"));
    }
    tensor.sources.push_back({rank, std::move(box)});
  }
}

// `listings[r]` is rank r's. A pure function, so that all ranks fail alike.
std::vector<GatheredTensor> plan(const std::vector<std::string>& listings) {
  std::map<std::string, GatheredTensor> by_name;
  for (size_t rank = 0; rank < listings.size(); ++rank) {
    for (const auto& item : Json::parse(listings[rank])) {
      const TensorInfo info{item[0].get<std::string>(), static_cast<ElementType>(item[1].get<int>()),
                            item[2].get<Index>()};
      auto& tensor = by_name.try_emplace(info.name, GatheredTensor{info, {}}).first->second;
      check(tensor.info == info,
            cat("tensor ", info.name, " has one shape and type on all ranks; rank ", rank, " differs"));
      add_sources(tensor, item[3], static_cast<int>(rank));
    }
  }
  std::vector<GatheredTensor> tensors;
  for (auto& [name, tensor] : by_name) {
    int64_t covered = 0;
    for (const auto& source : tensor.sources) covered += source.box.num_elements();
    check(covered == num_elements(tensor.info.shape), cat("tensor ", name, " is covered by the boxes that ranks hold"));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Piece in_whole(const Box& box) { return {box, box.begin}; }

std::vector<int64_t> extents(const Box& box) {
  std::vector<int64_t> shape;
  for (size_t d = 0; d < box.begin.size(); ++d) shape.push_back(box.end[d] - box.begin[d]);
  return shape;
}

}  // namespace

Gather::Gather(const std::vector<PlacedTensor>& tensors, Communicator& world) : tensors_(tensors), world_(world) {
  world.queue().drain();  // the values are read on the host
  gathered_ = plan(all_gather_text(listing(tensors), device_of(tensors), world));
}

// The box of a tensor that this rank holds, in its local tensor.
at::Tensor Gather::own(const std::string& name, const Box& box) const {
  for (const auto& tensor : tensors_) {
    if (tensor.name != name) continue;
    for (const Piece& piece : tensor.placement.pieces) {
      if (piece.global == box) return part_of(tensor.local, piece);
    }
  }
  throw InternalError(cat("a rank sends boxes that it holds; it has no such box of ", name));
}

at::Tensor Gather::operator()(const GatheredTensor& tensor) const {
  if (world_.rank() == 0) return received(tensor);
  send(tensor);
  return {};
}

at::Tensor Gather::received(const GatheredTensor& tensor) const {
  const auto options = at::TensorOptions(scalar_type(tensor.info.type));
  const auto whole = at::empty(tensor.info.shape, options);
  std::vector<P2p> transfers;
  std::vector<const Box*> arriving;
  for (const auto& [rank, box] : tensor.sources) {
    if (rank == 0) {
      part_of(whole, in_whole(box)).copy_(own(tensor.info.name, box));
    } else {
      transfers.push_back({P2p::Kind::Recv, at::empty(extents(box), options.device(device_of(tensors_))), rank, kTag});
      arriving.push_back(&box);
    }
  }
  if (!transfers.empty()) world_.batch(transfers).wait_host();
  for (size_t i = 0; i < transfers.size(); ++i) part_of(whole, in_whole(*arriving[i])).copy_(transfers[i].tensor);
  return whole;
}

void Gather::send(const GatheredTensor& tensor) const {
  std::vector<P2p> transfers;
  for (const auto& [rank, box] : tensor.sources) {
    if (rank != world_.rank()) continue;
    transfers.push_back({P2p::Kind::Send, own(tensor.info.name, box).contiguous(), 0, kTag});
  }
  if (!transfers.empty()) world_.batch(transfers).wait_host();
}

}  // namespace braid
