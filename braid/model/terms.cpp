// The arithmetic of terms.
#include "braid/model/terms.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::model {

Terms::Terms(const Dims& dims) {
  terms_.push_back({});
  for (const Dim& dim : dims) {
    Terms sum;
    for (const std::string& segment : dim.segments) sum.add({1, segment});
    *this = *this * sum;
  }
}

void Terms::add(Term term) {
  std::ranges::sort(term.letters);
  const auto same = std::ranges::find(terms_, term.letters, &Term::letters);
  if (same == terms_.end()) {
    terms_.push_back(std::move(term));
  } else {
    same->factor += term.factor;
  }
}

Terms Terms::without(char letter) const {
  Terms rest;
  for (Term term : terms_) {
    const size_t at = term.letters.find(letter);
    check(at != std::string::npos, "each term has the letter");
    rest.add({term.factor, term.letters.erase(at, 1)});
  }
  return rest;
}

Terms& Terms::operator+=(const Terms& other) {
  for (const Term& term : other.terms_) add(term);
  return *this;
}

Terms operator*(const Terms& a, const Terms& b) {
  Terms product;
  for (const auto& [factor, letters] : a.terms_) {
    for (const auto& each : b.terms_) product.add({factor * each.factor, letters + each.letters});
  }
  return product;
}

Terms operator*(double factor, Terms terms) {
  for (auto& term : terms.terms_) term.factor *= factor;
  return terms;
}

}  // namespace braid::model
