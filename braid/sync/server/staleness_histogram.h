// A histogram of staleness: the number of updates that a server made between a worker's pull and the push based on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

class StalenessHistogram {
 public:
  void add(int64_t updates) {
    const auto at = static_cast<size_t>(updates);
    if (counts_.size() <= at) counts_.resize(at + 1);
    ++counts_[at];
  }
  void add(const StalenessHistogram& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

  const std::vector<int64_t>& counts() const { return counts_; }  // by number of updates
  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t count : counts_) sum += count;
    return sum;
  }
  int64_t most() const { return counts_.empty() ? 0 : static_cast<int64_t>(counts_.size()) - 1; }
  // Returns 0 if there are no counts.
  double mean() const {
    double sum = 0;
    for (size_t i = 0; i < counts_.size(); ++i) sum += static_cast<double>(i) * static_cast<double>(counts_[i]);
    return sum == 0 ? 0 : sum / static_cast<double>(total());
  }

 private:
  std::vector<int64_t> counts_;
};

}  // namespace braid
