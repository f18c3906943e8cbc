// The notation of dims.
#include "braid/model/dims.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::model {
namespace {

// Returns the end of the group that begins at `begin`, and checks that it has one.
size_t end_of_group(std::string_view text, size_t begin) {
  const size_t end = text.find(text[begin] == '(' ? ')' : ']', begin);
  check_graph(end != std::string_view::npos, cat("a bracket of \"", text, "\" is not closed"));
  return end;
}

Dim dim_of(std::string_view segments) {
  Dim dim{{""}};
  for (const char each : segments) {
    if (each == '|') {
      dim.segments.emplace_back();
    } else {
      check_graph('a' <= each && each <= 'z', cat("\"", segments, "\" has more than letters in lower case"));
      dim.segments.back() += each;
    }
  }
  return dim;
}

}  // namespace

void check_graph(bool holds, std::string_view rule) {
  if (!holds) throw ConfigError({{"model.family", "", cat("must have sound blocks: ", rule), ""}});
}

Dims dims_of(std::string_view text) {
  Dims dims;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '(' && text[at] != '[') {
      dims.push_back(dim_of(text.substr(at, 1)));
      continue;
    }
    const size_t end = end_of_group(text, at);
    dims.push_back(dim_of(text.substr(at + 1, end - at - 1)));
    at = end;
  }
  return dims;
}

std::string text_of(const Dims& dims) {
  std::string text;
  for (const auto& [segments] : dims) {
    const std::string inside = joined(segments, "|");
    text += segments.size() > 1 ? "[" + inside + "]" : inside.size() > 1 ? "(" + inside + ")" : inside;
  }
  return text;
}

void Extents::split_over(int ranks) {
  Extents& extents = *this;
  const double keys = std::min<double>(extents['k'], ranks);
  extents['k'] /= keys;
  extents['m'] /= ranks / keys;
  extents['f'] /= ranks;
  extents['v'] /= ranks;
}

double Extents::of(const Dim& dim) const {
  double sum = 0;
  for (const std::string& segment : dim.segments) sum += of(segment);
  return sum;
}

double Extents::num_elements(const Dims& dims) const {
  double product = 1;
  for (const Dim& dim : dims) product *= of(dim);
  return product;
}

std::vector<int64_t> Extents::shape(const Dims& dims) const {
  std::vector<int64_t> extents;
  for (const Dim& dim : dims) extents.push_back(static_cast<int64_t>(of(dim)));
  return extents;
}

std::vector<int64_t> Extents::segments(const Dim& dim) const {
  std::vector<int64_t> extents;
  for (const std::string& segment : dim.segments) extents.push_back(static_cast<int64_t>(of(segment)));
  return extents;
}

}  // namespace braid::model
