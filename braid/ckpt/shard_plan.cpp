// Finds equal boxes by a hash of tensor and place. Then assigns shared boxes, the largest first, each to the rank with
// the fewest bytes among those that hold it.
#include "braid/ckpt/shard_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/box_runs.h"
#include "braid/ckpt/manifest.h"

namespace braid::ckpt {
namespace {

using Written = WorldPlan::Written;

constexpr int kSeveral = -2, kNobody = -1;
constexpr int64_t kBytesPerBox = 512;       // at most, in the file's header and the manifest
constexpr int64_t kBytesOfTheRest = 65536;  // for the configuration and similar data

struct HeldBox {
  size_t tensor;
  mesh::Box box;
  std::vector<size_t> groups;  // groups of ranks that hold the box
};

struct HeldTensor {
  TensorInfo info;
  int first_rank;             // lowest rank that lists the tensor
  std::vector<size_t> boxes;  // numbers of the inventory's boxes, valid until neighbours are joined
};

uint64_t hash_of(size_t tensor, const mesh::Box& box) {
  uint64_t hash = tensor;
  for (const mesh::Index* index : {&box.begin, &box.end}) {
    for (const int64_t number : *index) {
      hash = (hash ^ static_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

int64_t bytes_of_box(const TensorInfo& info, const mesh::Box& box) {
  return box.num_elements() * bytes_per_element(info.type);
}

// Returns true if `b` begins where `a` ends along dim 0 and is equally wide.
bool follows(const mesh::Box& a, const mesh::Box& b) {
  if (a.begin.empty() || a.end[0] != b.begin[0]) return false;
  const auto others = [](const mesh::Index& x, const mesh::Index& y) {
    return std::equal(x.begin() + 1, x.end(), y.begin() + 1);
  };
  return others(a.begin, b.begin) && others(a.end, b.end);
}

// The tensors of all ranks. Ranks with equal listings form a group, whose listing is read once.
class Inventory {
 public:
  explicit Inventory(const std::vector<std::string>& listings) {
    std::unordered_map<std::string_view, size_t> known;
    for (size_t rank = 0; rank < listings.size(); ++rank) {
      const auto [place, is_new] = known.try_emplace(listings[rank], groups.size());
      if (is_new) groups.emplace_back();
      groups[place->second].push_back(static_cast<int>(rank));
      if (is_new) add(unpacked_listing(listings[rank]), place->second);
    }
    for (const HeldTensor& tensor : tensors) check_covered(tensor);
    join_neighbours();
  }

  std::vector<std::vector<int>> groups;  // ranks of each group
  std::vector<HeldTensor> tensors;
  std::vector<HeldBox> boxes;

 private:
  void add(std::vector<ListedTensor> listing, size_t group) {
    const int rank = groups[group][0];
    for (auto& [info, held] : listing) {
      const auto [place, is_new] = by_name_.try_emplace(info.name, tensors.size());
      if (is_new) tensors.push_back({info, rank, {}});
      if (tensors[place->second].info != info) {
        check(false, cat("tensor ", info.name, " has one shape and type on all ranks; rank ", rank, " differs"));
      }
      for (mesh::Box& box : held) add_box(place->second, std::move(box), group);
    }
  }
  void add_box(size_t tensor, mesh::Box box, size_t group) {
    const uint64_t hash = hash_of(tensor, box);
    for (auto [at, end] = by_place_.equal_range(hash); at != end; ++at) {
      HeldBox& known = boxes[at->second];
      if (known.tensor != tensor || known.box != box) continue;
      if (known.groups.back() != group) known.groups.push_back(group);
      return;
    }
    by_place_.emplace(hash, boxes.size());
    tensors[tensor].boxes.push_back(boxes.size());
    boxes.push_back({tensor, std::move(box), {group}});
  }
  void check_covered(const HeldTensor& tensor) const {
    std::vector<const mesh::Box*> held;
    for (const size_t box : tensor.boxes) held.push_back(&boxes[box].box);
    if (cover_once(held, tensor.info.shape)) return;
    check(are_disjoint(held), cat("tensor ", tensor.info.name, ": boxes of ranks are equal or disjoint"));
    check(false, cat("tensor ", tensor.info.name, " is covered by the boxes that ranks hold"));
  }

  // Joins neighbouring boxes that the same ranks hold. A fused matrix that is joined whole is stored under its own
  // name.
  void join_neighbours() {
    std::vector<HeldBox> joined;
    for (HeldTensor& tensor : tensors) {
      std::sort(tensor.boxes.begin(), tensor.boxes.end(),
                [&](size_t a, size_t b) { return boxes[a].box.begin < boxes[b].box.begin; });
      const size_t first = joined.size();
      for (const size_t i : tensor.boxes) {
        HeldBox& box = boxes[i];
        if (joined.size() > first && joined.back().groups == box.groups && follows(joined.back().box, box.box)) {
          joined.back().box.end[0] = box.box.end[0];
        } else {
          joined.push_back(std::move(box));
        }
      }
    }
    boxes = std::move(joined);
  }

  std::unordered_map<std::string, size_t> by_name_;
  std::unordered_multimap<uint64_t, size_t> by_place_;
};

// Assigns boxes to writers. A box that only one rank holds is written by that rank, whatever its load.
class Sharing {
 public:
  Sharing(const Inventory& held, int64_t shared_bytes) : held_(held) {
    const int64_t ranks = std::accumulate(held.groups.begin(), held.groups.end(), int64_t{0},
                                          [](int64_t sum, const auto& group) { return sum + std::ssize(group); });
    loads_.resize(static_cast<size_t>(ranks));
    for (const HeldBox& box : held.boxes) bytes += bytes_of_box(held.tensors[box.tensor].info, box.box);
    most_ = std::max(shared_bytes, bytes / std::max<int64_t>(1, ranks));
    std::vector<const HeldBox*> shared;
    for (const HeldBox& box : held.boxes) {
      const bool alone = box.groups.size() == 1 && held.groups[box.groups[0]].size() == 1;
      if (alone) give(box, box.box);
      if (!alone) shared.push_back(&box);
    }
    std::stable_sort(shared.begin(), shared.end(),
                     [&](const HeldBox* a, const HeldBox* b) { return size(*a) > size(*b); });
    for (const HeldBox* box : shared) give_parts(*box);
    for (size_t t = 0; t < held.tensors.size(); ++t) {
      const TensorInfo& info = held.tensors[t].info;
      if (mesh::num_elements(info.shape) > 0) continue;
      written.push_back({t, {mesh::Index(info.shape.size(), 0), info.shape}, held.tensors[t].first_rank});
    }
  }

  std::vector<Written> written;
  int64_t bytes = 0;

 private:
  int64_t size(const HeldBox& box) const { return bytes_of_box(held_.tensors[box.tensor].info, box.box); }

  int least_loaded(const HeldBox& box) const {
    int least = held_.groups[box.groups[0]][0];
    for (const size_t group : box.groups) {
      for (const int rank : held_.groups[group]) {
        const auto [a, b] = std::pair(loads_[static_cast<size_t>(rank)], loads_[static_cast<size_t>(least)]);
        if (a < b || (a == b && rank < least)) least = rank;
      }
    }
    return least;
  }
  void give(const HeldBox& held, const mesh::Box& part) {
    const int writer = least_loaded(held);
    loads_[static_cast<size_t>(writer)] += bytes_of_box(held_.tensors[held.tensor].info, part);
    written.push_back({held.tensor, part, writer});
  }
  void give_parts(const HeldBox& held) {
    int64_t ranks = 0;
    for (const size_t group : held.groups) ranks += std::ssize(held_.groups[group]);
    const int64_t rows = held.box.begin.empty() ? 1 : held.box.end[0] - held.box.begin[0];
    const int64_t parts = std::min({ranks, rows, (size(held) + most_ - 1) / std::max<int64_t>(1, most_)});
    for (int64_t part = 0; part < std::max<int64_t>(1, parts); ++part) {
      mesh::Box box = held.box;
      if (parts > 1) {
        box.begin[0] = held.box.begin[0] + rows * part / parts;
        box.end[0] = held.box.begin[0] + rows * (part + 1) / parts;
      }
      give(held, box);
    }
  }

  const Inventory& held_;
  std::vector<int64_t> loads_;  // bytes by rank
  int64_t most_ = 0;            // bytes up to which a shared box is not cut
};

// Makes one box of each tensor that has one writer. If a tensor has several writers, joins neighbouring boxes of each.
std::vector<Written> put_together(std::vector<Written> boxes, const std::vector<TensorInfo>& tensors) {
  std::vector<int> writers(tensors.size(), kNobody);
  for (const Written& box : boxes) {
    int& writer = writers[box.tensor];
    writer = writer == kNobody || writer == box.writer ? box.writer : kSeveral;
  }
  std::sort(boxes.begin(), boxes.end(), [](const Written& a, const Written& b) {
    return std::tie(a.writer, a.tensor, a.box.begin) < std::tie(b.writer, b.tensor, b.box.begin);
  });
  std::vector<Written> together;
  for (Written& box : boxes) {
    const bool whole = writers[box.tensor] != kSeveral;
    if (whole && !together.empty() && together.back().tensor == box.tensor) continue;
    if (whole) {
      box.box = {mesh::Index(tensors[box.tensor].shape.size(), 0), tensors[box.tensor].shape};
    } else if (!together.empty() && together.back().writer == box.writer && together.back().tensor == box.tensor &&
               follows(together.back().box, box.box)) {
      together.back().box.end[0] = box.box.end[0];
      continue;
    }
    together.push_back(std::move(box));
  }
  return together;
}

ShardFile laid_out_file(std::string name, const std::vector<PlannedBox>& boxes) {
  ShardFile file{std::move(name), {}, {}};
  std::vector<TensorInfo> infos;
  std::unordered_map<std::string, const PlannedBox*> by_name;
  for (const PlannedBox& planned : boxes) {
    infos.push_back({stored_name(planned.tensor.name, planned.tensor.shape, planned.box), planned.tensor.type,
                     extents(planned.box)});
    check(by_name.emplace(infos.back().name, &planned).second, "no tensor is called as a box of another");
  }
  file.entries = laid_out(std::move(infos));
  for (const TensorEntry& entry : file.entries) file.boxes.push_back(*by_name.at(entry.info.name));
  return file;
}

}  // namespace

WorldPlan plan_world(const std::vector<std::string>& listings, int64_t shared_bytes) {
  const Inventory held(listings);
  Sharing sharing(held, shared_bytes);
  std::vector<size_t> order(held.tensors.size()), place(held.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto name = [&](size_t t) -> const std::string& { return held.tensors[t].info.name; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return name(a) < name(b); });
  WorldPlan plan{{}, {}, sharing.bytes};
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    plan.tensors.push_back(held.tensors[order[i]].info);
  }
  for (Written& box : sharing.written) box.tensor = place[box.tensor];
  plan.boxes = put_together(std::move(sharing.written), plan.tensors);
  return plan;
}

int64_t bytes_on_disk(const WorldPlan& plan) {
  return plan.bytes + std::ssize(plan.boxes) * kBytesPerBox + kBytesOfTheRest;
}

Shard shard_of(const WorldPlan& plan, int rank) {
  std::map<std::string, std::vector<PlannedBox>> own{{"model", {}}, {"optimizer", {}}};
  std::map<std::string, std::vector<int>> writers{{"model", {}}, {"optimizer", {}}};
  for (const Written& box : plan.boxes) {
    const TensorInfo& tensor = plan.tensors[box.tensor];
    const std::string kind = is_weight(tensor.name) ? "model" : "optimizer";
    auto& known = writers[kind];
    if (known.empty() || known.back() != box.writer) known.push_back(box.writer);
    if (box.writer == rank) own[kind].push_back({tensor, box.box});
  }
  if (writers["model"].empty()) writers["model"] = {0};  // a checkpoint always has a file of weights, even an empty one
  Shard shard;
  for (const auto& [kind, boxes] : own) {
    auto& known = writers[kind];
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const auto place = std::find(known.begin(), known.end(), rank);
    if (place == known.end()) continue;
    const auto number = static_cast<size_t>(place - known.begin()) + 1;
    shard.files.push_back(laid_out_file(safetensors_name(kind, number, known.size()), boxes));
  }
  return shard;
}

}  // namespace braid::ckpt
