// Pairwise covering arrays: a few legal rows in which every pair of values of two factors occurs, as far as a legal row
// can have it. So some row has each fault that two settings make together. Rows are chosen greedily among random ones.
// Source: Cohen et al., "The AETG System" (1997).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace braid {

class CoveringArray {
 public:
  using Row = std::vector<size_t>;  // a value of each factor
  struct Pair {
    size_t first_factor, first, second_factor, second;
    auto operator<=>(const Pair&) const = default;
  };

  // `sizes`: the number of values of each factor. Value 0 of all factors together is legal, and has the fewest
  // conditions.
  CoveringArray(std::vector<size_t> sizes, std::function<bool(const Row&)> legal)
      : sizes_(std::move(sizes)), legal_(std::move(legal)) {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      for (size_t j = i + 1; j < sizes_.size(); ++j) add_pairs(i, j);
    }
    num_pairs_ = open_.size();
    while (!open_.empty()) add_row();
  }

  const std::vector<Row>& rows() const { return rows_; }
  size_t num_pairs() const { return num_pairs_; }
  // Returns the pairs for which no legal row was found.
  const std::vector<Pair>& illegal() const { return illegal_; }

 private:
  static constexpr int kDrawn = 600, kLegal = 40;  // the most rows that are drawn for a pair, and legal ones of them

  void add_pairs(size_t i, size_t j) {
    for (size_t a = 0; a < sizes_[i]; ++a) {
      for (size_t b = 0; b < sizes_[j]; ++b) open_.insert({i, a, j, b});
    }
  }

  // Half of all values are 0, so that rare pairs meet few conditions.
  Row drawn(const Pair& pair) {
    Row row;
    for (const size_t size : sizes_) row.push_back(numbers_() % 2 == 0 ? 0 : numbers_() % size);
    row[pair.first_factor] = pair.first;
    row[pair.second_factor] = pair.second;
    return row;
  }

  std::vector<Pair> open_pairs(const Row& row) const {
    std::vector<Pair> pairs;
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) {
        if (open_.contains({i, row[i], j, row[j]})) pairs.push_back({i, row[i], j, row[j]});
      }
    }
    return pairs;
  }

  // Adds the row with the first open pair that covers most of the others.
  void add_row() {
    const Pair pair = *open_.begin();
    Row best;
    size_t most = 0;
    for (int draw = 0, legal = 0; draw < kDrawn && legal < kLegal; ++draw) {
      const Row row = drawn(pair);
      const size_t covered = open_pairs(row).size();
      if (covered <= most && !best.empty()) continue;
      if (!legal_(row)) continue;
      ++legal;
      best = row;
      most = covered;
    }
    if (best.empty()) {
      illegal_.push_back(pair);
      open_.erase(pair);
      return;
    }
    for (const Pair& covered : open_pairs(best)) open_.erase(covered);
    rows_.push_back(best);
  }

  const std::vector<size_t> sizes_;
  const std::function<bool(const Row&)> legal_;
  std::mt19937 numbers_{1};  // the same rows in every run
  std::set<Pair> open_;
  std::vector<Row> rows_;
  std::vector<Pair> illegal_;
  size_t num_pairs_ = 0;
};

}  // namespace braid
