// Ranks gather one number for each box that they hold; every rank then judges all of them.
#include "braid/train/norm_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/train/held_tensors.h"

namespace braid::train {
namespace {

struct BoxKey {
  int64_t param;  // place in the ParamOrder
  uint64_t box;   // digest of its bounds
  auto operator<=>(const BoxKey&) const = default;
};

// A box of a gradient on this rank.
struct BoxSquare {
  BoxKey key;
  int64_t elements;
  double square;
};

struct Holder {
  int rank;
  BoxSquare box;
};
using Holders = std::map<BoxKey, std::vector<Holder>>;

uint64_t digest_of_bounds(const mesh::Box& box) {
  Digest digest(DigestKind::Xxh3);
  for (const mesh::Index* bounds : {&box.begin, &box.end}) digest.add(std::as_bytes(std::span(*bounds)));
  return digest.value();
}

double square(double value) { return value * value; }

// Keeps several sums, so that an addition does not wait for the one before.
template <class T>
double sum_of_squares(const at::Tensor& values) {
  constexpr int64_t kSums = 8;
  const T* const begin = values.const_data_ptr<T>();
  const int64_t count = values.numel(), end = count / kSums * kSums;
  double sums[kSums] = {};
  for (int64_t i = 0; i < end; i += kSums) {
    for (int64_t j = 0; j < kSums; ++j) sums[j] += square(static_cast<double>(begin[i + j]));
  }
  for (int64_t i = end; i < count; ++i) sums[0] += square(static_cast<double>(begin[i]));
  return std::accumulate(sums, sums + kSums, 0.0);
}

double sum_of_squares(const at::Tensor& gradient) {
  const at::Tensor values = gradient.detach().cpu().contiguous();
  return values.scalar_type() == at::kDouble ? sum_of_squares<double>(values) : sum_of_squares<float>(values);
}

// Returns the boxes of gradients that this rank owns.
std::vector<BoxSquare> boxes_of(RankModel& model) {
  const optim::ParamPlaces places = optim::places_of(model.order());
  std::vector<BoxSquare> boxes;
  const auto add = [&](const param::Parameter& param, const at::Tensor& part, const mesh::Placement& placement) {
    for (const mesh::Piece& piece : placement.pieces) {
      const at::Tensor values = box_of(part, piece);
      boxes.push_back(
          {{places.at(param.name), digest_of_bounds(piece.global)}, values.numel(), sum_of_squares(values)});
    }
  };
  visit_held(model.params(), Held::Gradients, add);
  return boxes;
}

Holders holders_of(const std::vector<std::vector<BoxSquare>>& by_rank) {
  Holders holders;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const BoxSquare& box : by_rank[rank]) holders[box.key].push_back({static_cast<int>(rank), box});
  }
  return holders;
}

// Returns true if the numbers are within `bound`, or both not finite.
bool near(double a, double b, double bound) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
  return std::abs(a - b) <= bound;
}

// Returns the largest difference of copies, relative to the norm of all gradients. A sum of up to 1/eps terms in
// another order differs by some sqrt(1/eps) eps.
double rounding_of_copies(const param::ParamStore& store) {
  if (store.flat_grads().is_cpu()) return 0;
  switch (store.flat_data().scalar_type()) {
    case at::kDouble:
      return std::sqrt(std::numeric_limits<double>::epsilon());
    case at::kBFloat16:
      return std::sqrt(0x1p-7);
    case at::kHalf:
      return std::sqrt(0x1p-10);
    default:
      return std::sqrt(std::numeric_limits<float>::epsilon());
  }
}

// Returns "0.5 on ranks 0, 2 and 1 on rank 1". `world_ranks` are those of the holders' group.
std::string norms_text(const std::vector<Holder>& holders, const std::vector<int>& world_ranks) {
  std::map<uint64_t, std::vector<std::string>> ranks_of;  // by the bits of the square
  for (const Holder& holder : holders) {
    ranks_of[std::bit_cast<uint64_t>(holder.box.square)].push_back(cat(world_ranks[holder.rank]));
  }
  std::vector<std::string> texts;
  for (const auto& [bits, ranks] : ranks_of) {
    const std::string norm = exact(std::sqrt(std::bit_cast<double>(bits)));
    texts.push_back(cat(norm, " on ", ranks.size() == 1 ? "rank " : "ranks ", joined(ranks)));
  }
  return joined(texts, " and ");
}

// Returns the end of a sentence about the first copies in model order whose norms differ by more than `bound`; empty if
// there are none.
std::string differing_gradients(const Holders& all, double bound, const std::vector<int>& world_ranks,
                                const optim::ParamOrder& order) {
  for (const auto& [key, holders] : all) {
    const double first = std::sqrt(holders.front().box.square);
    const auto is_near = [&](const Holder& holder) { return near(std::sqrt(holder.box.square), first, bound); };
    if (std::ranges::all_of(holders, is_near)) continue;
    return cat("; the copies of the gradient of ", order[static_cast<size_t>(key.param)], " differ: its norm is ",
               norms_text(holders, world_ranks));
  }
  return "";
}

// Returns the ranks of the world that `ranks` are: all of them, or those of one replica.
std::vector<int> world_ranks_of(const Communicator& ranks, const Groups& groups) {
  if (&ranks == &groups.model())
    return groups.mesh.peers(groups.world.rank(), mesh::AxisSet{mesh::Axis::Data}.complement());
  std::vector<int> all(static_cast<size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::string norm_fault(RankModel& model, double norm, Communicator& ranks) {
  const auto norms = comm::gather(ranks, "norms that replicas form", norm);
  const Holders holders = holders_of(comm::gather(ranks, "squares of gradients", boxes_of(model)));
  double squares = 0, count = 0;
  for (const auto& [key, copies] : holders) {
    squares += copies.front().box.square;
    count += static_cast<double>(copies.front().box.elements);
  }
  const double formed = std::sqrt(squares);
  const std::vector<int> world_ranks = world_ranks_of(ranks, model.groups());
  const std::string copies =
      !std::isfinite(formed)
          ? ""
          : differing_gradients(holders, rounding_of_copies(model.params()) * formed, world_ranks, model.order());
  const auto is_near = [&](double one) { return near(one, formed, (count + 3) * 0x1p-53 * formed); };
  auto odd = std::ranges::find_if_not(norms, is_near);
  if (odd == norms.end() && copies.empty()) return "";
  if (odd == norms.end()) odd = norms.begin();
  return cat("the gradient norm of rank ", world_ranks[static_cast<size_t>(odd - norms.begin())], " is ", exact(*odd),
             ", and ", exact(formed), " formed tensor by tensor", copies);
}

}  // namespace braid::train
