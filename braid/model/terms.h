// Sums of products of extents, such as the size of a tensor, "2 btc", or the work of an op. They are made once for a
// model and evaluated for the extents of many layouts.
#pragma once

#include <string>
#include <vector>

#include "braid/model/dims.h"

namespace braid::model {

class Terms {
 public:
  Terms() = default;
  // The number of elements of a tensor with these dims; 1 without dims.
  explicit Terms(const Dims& dims);
  explicit Terms(const Dim& dim) : Terms(Dims{dim}) {}

  double at(const Extents& extents) const {
    double sum = 0;
    for (const Term& term : terms_) sum += term.factor * extents.of(term.letters);
    return sum;
  }
  // Returns true for the number of elements of a scalar.
  bool is_one() const { return terms_.size() == 1 && terms_[0].letters.empty() && terms_[0].factor == 1; }
  // Returns the terms divided by the extent of `letter`, which is in each of them.
  Terms without(char letter) const;

  Terms& operator+=(const Terms& other);
  friend Terms operator+(Terms a, const Terms& b) { return a += b; }
  friend Terms operator*(const Terms& a, const Terms& b);
  friend Terms operator*(double factor, Terms terms);

 private:
  struct Term {
    double factor = 1;
    std::string letters;  // sorted
  };
  void add(Term term);

  std::vector<Term> terms_;  // with different letters
};

}  // namespace braid::model
