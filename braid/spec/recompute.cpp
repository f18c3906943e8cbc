// The parser of memory.recompute: words separated by commas, and the number after "every:".
#include "braid/spec/recompute.h"

#include <algorithm>
#include <charconv>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::spec {
namespace {

constexpr std::string_view kEvery = "every:";
constexpr int kMaxBlocks = 4096;

std::string_view stripped(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

struct Digits {
  bool only = false;  // true if the text is one or more digits
  int value = 0;      // at most kMaxBlocks + 1
};

Digits digits(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return {true, error == std::errc() ? std::min(value, kMaxBlocks + 1) : kMaxBlocks + 1};
}

std::string nearest_entry(const std::string& entry) {
  if (recompute_policy(entry)) return entry;
  if (entry.starts_with(kEvery)) {
    const Digits count = digits(std::string_view(entry).substr(kEvery.size()));
    return cat(kEvery, count.only && count.value > 0 ? kMaxBlocks : 1);
  }
  const std::string word = nearest(entry, {"none", "selective", "full", "every:1"});
  return word.empty() ? "none" : word;
}

}  // namespace

std::vector<std::string> recompute_entries(const MemorySpec& spec) {
  std::vector<std::string> entries;
  for (std::string_view rest = spec.recompute;;) {
    const auto comma = rest.find(',');
    entries.emplace_back(stripped(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return entries;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<Recompute> recompute_policy(std::string_view entry) {
  using enum Recompute::Keeps;
  if (entry == "none") return Recompute{};
  if (entry == "selective") return Recompute{Selected, 0};
  if (entry == "full") return Recompute{SegmentInputs, 1};
  if (!entry.starts_with(kEvery)) return {};
  const Digits count = digits(entry.substr(kEvery.size()));
  if (!count.only || count.value < 1 || count.value > kMaxBlocks) return {};
  return Recompute{SegmentInputs, count.value};
}

std::string nearest_recompute(const MemorySpec& spec, int num_stages) {
  std::vector<std::string> entries = recompute_entries(spec);
  for (std::string& entry : entries) entry = nearest_entry(entry);
  if (entries.size() > 1) entries.resize(std::max(num_stages, 1), std::string(entries.back()));
  return joined(entries, ",");
}

Recompute stage_recompute(const MemorySpec& spec, int stage) {
  const std::vector<std::string> entries = recompute_entries(spec);
  check(entries.size() == 1 || stage < static_cast<int>(entries.size()),
        "every stage has an entry of memory.recompute");
  const auto policy = recompute_policy(entries[entries.size() == 1 ? 0 : stage]);
  check(policy.has_value(), "memory.recompute has been judged");
  return *policy;
}

}  // namespace braid::spec
