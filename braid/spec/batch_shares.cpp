// Shares of the batch by data rank, and the microbatches that follow from them.
#include "braid/spec/batch_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

constexpr double kMostShare = 1e6;  // the largest train.batch

bool is_share(double number) { return number >= 1 && number <= kMostShare && number == std::floor(number); }

}  // namespace

bool has_equal_shares(const MeshSpec& mesh) { return mesh.batch_shares == kEqualShares; }

std::optional<std::vector<int>> batch_shares(const MeshSpec& mesh) {
  if (has_equal_shares(mesh)) return {};
  const auto numbers = partition_list(mesh.batch_shares);
  if (!numbers || std::ssize(*numbers) != mesh.data || !std::ranges::all_of(*numbers, is_share)) return {};
  return std::vector<int>(numbers->begin(), numbers->end());
}

std::string shares_text(const std::vector<int>& shares) {
  int common = 0;
  for (const int share : shares) common = std::gcd(common, share);
  if (std::ranges::count(shares, common) == std::ssize(shares)) return kEqualShares;
  std::vector<std::string> words;
  for (const int share : shares) words.push_back(cat(share / common));
  return joined(words, ",");
}

int64_t batch_unit(const RunSpec& spec) {
  const auto shares = batch_shares(spec.mesh);
  const int64_t sum = shares ? std::accumulate(shares->begin(), shares->end(), int64_t{0}) : spec.mesh.data;
  int64_t unit = spec.train.microbatch;
  // Until problems() has checked the factors, they may be any numbers.
  const bool overflows =
      __builtin_mul_overflow(unit, sum, &unit) || __builtin_mul_overflow(unit, spec.mesh.expert, &unit);
  return overflows ? std::numeric_limits<int64_t>::max() : unit;
}

std::vector<int> first_microbatches(const RunSpec& spec) {
  const auto shares = batch_shares(spec.mesh);
  check(shares || has_equal_shares(spec.mesh), "every data rank has a share");
  const auto each = static_cast<int>(spec.train.batch / batch_unit(spec));
  std::vector<int> first{0};
  for (int rank = 0; rank < spec.mesh.data; ++rank)
    first.push_back(first.back() + each * (shares ? (*shares)[rank] : 1));
  return first;
}

int num_microbatches(const RunSpec& spec, int data_rank) {
  const auto shares = batch_shares(spec.mesh);
  return static_cast<int>(spec.train.batch / batch_unit(spec)) * (shares ? shares->at(data_rank) : 1);
}

int busiest_data_rank(const RunSpec& spec) {
  const auto shares = batch_shares(spec.mesh);
  return shares ? static_cast<int>(std::ranges::max_element(*shares) - shares->begin()) : 0;
}

}  // namespace braid::spec
