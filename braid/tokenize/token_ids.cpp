// Ranges of ids, and ids that are given twice.
#include "braid/tokenize/token_ids.h"

#include <algorithm>

#include "braid/base/text.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMostHoles = int64_t{1} << 20;

}  // namespace

bool TokenIds::take(int64_t id, const std::string& name) {
  if (id < 0 || id >= std::min(kMaxTokens, num_listed_ + kMostHoles)) {
    bad_.push_back(cat(name, " (", id, ")"));
    return false;
  }
  const auto place = static_cast<size_t>(id);
  if (place >= taken_.size()) taken_.resize(place + 1);
  if (taken_[place]) {
    bad_.push_back(cat(name, " (", id, ", taken)"));
    return false;
  }
  taken_[place] = true;
  return true;
}

void TokenIds::add_faults(Faults& faults) const {
  if (bad_.empty()) return;
  faults.add("vocabulary", cat("ids must be distinct whole numbers below 2^24 that leave at most 2^20 out; not so ",
                               first_few(bad_)));
}

}  // namespace braid::tokenize
