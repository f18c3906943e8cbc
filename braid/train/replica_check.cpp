// Ranks first exchange lists of their copies, so that a tensor that only one rank holds is not read.
#include "braid/train/replica_check.h"

#include <algorithm>
#include <map>
#include <span>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/train/saved_tensors.h"

namespace braid::train {
namespace {

constexpr int64_t kKinds = 4;  // at least the number of values of CopyOf

struct CopyKey {
  int64_t what;  // parameter and kind, as one number
  int64_t box;
  auto operator<=>(const CopyKey&) const = default;
};
struct RankDigest {
  int rank;
  int64_t digest;
};
using Copies = std::map<CopyKey, std::vector<RankDigest>>;

void add_index(Digest& digest, const mesh::Index& numbers) { digest.add(std::as_bytes(std::span(numbers))); }

uint64_t digest_of_box(const std::string& name, const mesh::Box& box) {
  Digest digest(DigestKind::Xxh3);
  add_sized(digest, name);
  for (const mesh::Index* numbers : {&box.begin, &box.end}) add_index(digest, *numbers);
  return digest.value();
}

// Adds each piece of a tensor by itself: another rank may hold a copy of one of them alone.
void add_pieces(const HeldCopy& of, const ckpt::PlacedTensor& placed, std::vector<HeldCopy>& held) {
  for (const mesh::Piece& piece : placed.placement.pieces) {
    at::Tensor values = placed.local;
    for (int64_t dim = 0; dim < values.dim(); ++dim) {
      values = values.narrow(dim, piece.local_begin[dim], piece.global.end[dim] - piece.global.begin[dim]);
    }
    held.push_back({of.param, of.what, digest_of_box(placed.name, piece.global), values});
  }
}

CopyKey key_of(const HeldCopy& held) {
  return {held.param * kKinds + static_cast<int64_t>(held.what), static_cast<int64_t>(held.box)};
}

int64_t digest_of_values(const HeldCopy& held) {
  const at::Tensor host = held.values.cpu().contiguous();
  const auto* const bytes = static_cast<const std::byte*>(host.const_data_ptr());
  return static_cast<int64_t>(digest_of(DigestKind::Xxh3, std::span(bytes, host.nbytes())));
}

// Returns the copies of all ranks, by key. `digests` holds the digests of each rank's copies, in the order of its keys.
Copies copies_of_all(const std::vector<std::vector<CopyKey>>& keys, const std::vector<std::vector<int64_t>>& digests) {
  Copies copies;
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    for (size_t i = 0; i < keys[rank].size(); ++i) {
      copies[keys[rank][i]].push_back({static_cast<int>(rank), digests[rank][i]});
    }
  }
  return copies;
}

// Returns the copies whose digest at most half of all copies have. If no digest has a majority, these are all copies.
std::vector<RankDigest> odd_ones(const std::vector<RankDigest>& copies) {
  const auto is_odd = [&](const RankDigest& one) {
    return 2 * std::ranges::count(copies, one.digest, &RankDigest::digest) <= std::ssize(copies);
  };
  std::vector<RankDigest> odd;
  std::ranges::copy_if(copies, std::back_inserter(odd), is_odd);
  return odd;
}

std::string ranks_text(const std::vector<RankDigest>& ranks) {
  std::vector<std::string> names;
  for (const RankDigest& each : ranks) names.push_back(cat(each.rank));
  return cat(names.size() == 1 ? "rank " : "ranks ", joined(names));
}

std::string kind_text(CopyOf what) {
  switch (what) {
    case CopyOf::Weights:
      return "weights";
    case CopyOf::Masters:
      return "master weights";
    case CopyOf::State:
      break;
  }
  return "optimizer state";
}

std::string fault_text(const CopyKey& key, const std::vector<RankDigest>& copies, const optim::ParamOrder& order) {
  const std::string what = cat("the ", kind_text(static_cast<CopyOf>(key.what % kKinds)), " of ",
                               order[static_cast<size_t>(key.what / kKinds)]);
  const auto odd = odd_ones(copies);
  if (odd.size() == copies.size()) {
    return cat("the copies of ", what, " on ", ranks_text(copies), " differ, and no majority says which are right");
  }
  return cat(ranks_text(odd), ": the copy of ", what, " differs from that of most of ", ranks_text(copies));
}

}  // namespace

std::vector<HeldCopy> copies_held(RankModel& model, optim::Optimizer& optimizer, sync::ReplicaLife& replicas) {
  const param::ParamStore& store = model.params();
  const optim::ParamPlaces places = optim::places_of(model.order());
  std::vector<HeldCopy> held;
  const bool whole = !store.shards_parameters();
  for (const auto* const params : {&store.params(), &store.frozen()}) {
    for (const param::Parameter& param : *params) {
      if (!whole) break;
      add_pieces({places.at(param.name), CopyOf::Weights}, {param.name, param.placement, param.data.detach()}, held);
    }
  }
  const bool weights_are_masters = whole && store.flat_master().is_same(store.flat_data());
  const auto is_frozen = [&](std::string_view name) {
    return std::ranges::find(store.frozen(), name, &param::Parameter::name) != store.frozen().end();
  };
  const auto saved = tensors_to_save(saved_tensors(store, optimizer.states(), replicas), replicas.own_prefix());
  for (const ckpt::PlacedTensor& placed : saved) {
    const std::string_view name = placed.name;
    const size_t slash = name.rfind('/');
    const bool master = slash == std::string_view::npos;
    const auto place = places.find(master ? name : name.substr(slash + 1));
    const bool is_listed = master && whole && (weights_are_masters || is_frozen(name));
    if (place == places.end() || is_listed) continue;
    const CopyOf what = master ? CopyOf::Masters : CopyOf::State;
    add_pieces({place->second, what}, {placed.name, placed.placement, placed.local.detach()}, held);
  }
  return held;
}

std::string differing_copies(const std::vector<HeldCopy>& held, Communicator& world, const optim::ParamOrder& order) {
  if (world.size() == 1) return "";
  std::vector<CopyKey> own;
  for (const HeldCopy& one : held) own.push_back(key_of(one));
  const auto keys = comm::gather(world, "copies that ranks hold", own);
  std::map<CopyKey, int> holders;
  for (const std::vector<CopyKey>& of_rank : keys) {
    for (const CopyKey& key : of_rank) ++holders[key];
  }
  std::vector<int64_t> digests;  // 0 if no other rank holds a copy
  for (const HeldCopy& one : held) digests.push_back(holders.at(key_of(one)) > 1 ? digest_of_values(one) : 0);
  for (const auto& [key, copies] : copies_of_all(keys, comm::gather(world, "digests of copies", digests))) {
    const auto differs = [&](const RankDigest& one) { return one.digest != copies.front().digest; };
    if (std::ranges::any_of(copies, differs)) return fault_text(key, copies, order);
  }
  return "";
}

}  // namespace braid::train
