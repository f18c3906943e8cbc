// Faults as problems of the key "data.tokenizer".
#include "braid/tokenize/faults.h"

#include <algorithm>

#include "braid/base/text.h"

namespace braid::tokenize {

void Faults::add(const std::string& where, const std::string& rule) {
  problems_.push_back({"data.tokenizer", path_, where.empty() ? rule : cat(where, ": ", rule), ""});
}

void Faults::throw_any() const {
  if (any()) throw ConfigError(problems_);
}

std::string first_few(const std::vector<std::string>& names) {
  const std::vector<std::string> named(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(names.size(), 5)));
  return cat(names.size(), ": ", joined(named), names.size() > named.size() ? ", ..." : "");
}

}  // namespace braid::tokenize
