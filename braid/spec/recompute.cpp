// The parser of memory.recompute: words separated by commas, the number after "every:", the ranges after "blocks:".
#include "braid/spec/recompute.h"

#include <algorithm>
#include <charconv>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

constexpr std::string_view kEvery = "every:", kBlocks = "blocks:";
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

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Parses "A", "A-B" or one of them with "/K". Returns nothing if the text is malformed or a number is too large.
std::optional<RecomputedBlocks> range_of(std::string_view text) {
  const auto slash = text.find('/');
  const std::string_view range = text.substr(0, slash);
  const auto dash = range.find('-');
  const Digits first = digits(range.substr(0, dash));
  const Digits last = dash == range.npos ? first : digits(range.substr(dash + 1));
  const Digits segment = slash == text.npos ? Digits{true, 1} : digits(text.substr(slash + 1));
  const bool is_read = first.only && last.only && segment.only && segment.value >= 1;
  if (!is_read || std::max({first.value, last.value, segment.value}) > kMaxBlocks) return {};
  return RecomputedBlocks{first.value, last.value + 1, segment.value};
}

struct BlockList {
  std::vector<RecomputedBlocks> ranges;  // those without faults
  std::vector<std::string> faults;
};

BlockList block_list(std::string_view text) {
  BlockList list;
  int end = 0;
  for (const std::string_view item : parts_of(text, '+')) {
    const auto range = range_of(item);
    if (!range) {
      list.faults.push_back(cat("\"", item, "\" is not A, A-B or A-B/K with numbers up to ", kMaxBlocks));
    } else if (range->begin >= range->end) {
      list.faults.push_back(cat(item, " ends before it begins"));
    } else if (range->begin < end) {
      list.faults.push_back(cat(item, " begins before block ", end, ", where the range before it ends"));
    } else {
      list.ranges.push_back(*range);
    }
    if (range && range->begin < range->end) end = std::max(end, range->end);
  }
  return list;
}

std::string item_text(const RecomputedBlocks& range) {
  const std::string segment = range.segment > 1 ? cat("/", range.segment) : "";
  return range.end - range.begin == 1 ? cat(range.begin) : cat(range.begin, "-", range.end - 1, segment);
}

std::string list_text(const std::vector<RecomputedBlocks>& ranges) {
  std::vector<std::string> items;
  for (const RecomputedBlocks& range : ranges) items.push_back(item_text(range));
  return items.empty() ? "none" : cat(kBlocks, joined(items, "+"));
}

// Returns the faults of an entry that is no policy.
std::string entry_faults(const std::string& entry, size_t num_entries) {
  if (entry == kAutoRecompute && num_entries > 1) return "\"auto\" is for all stages together";
  if (recompute_policy(entry)) return "";
  if (!entry.starts_with(kBlocks)) return cat("\"", entry, "\" is none of them");
  return cat("of \"", entry, "\" ", joined(block_list(std::string_view(entry).substr(kBlocks.size())).faults));
}

std::string nearest_entry(const std::string& entry, int num_blocks) {
  if (entry.starts_with(kBlocks)) {
    auto ranges = block_list(std::string_view(entry).substr(kBlocks.size())).ranges;
    for (RecomputedBlocks& range : ranges) range.end = std::min(range.end, num_blocks);
    std::erase_if(ranges, [](const RecomputedBlocks& range) { return range.begin >= range.end; });
    return list_text(ranges);
  }
  if (recompute_policy(entry)) return entry;
  if (entry.starts_with(kEvery)) {
    const Digits count = digits(std::string_view(entry).substr(kEvery.size()));
    return cat(kEvery, count.only && count.value > 0 ? kMaxBlocks : 1);
  }
  const std::string word = nearest(entry, {"none", "selective", "full", "every:1", "auto"});
  return word.empty() ? "none" : word;
}

// Returns the ranges with neighbours joined whose segments are equal: a range may end in a shorter segment.
std::vector<RecomputedBlocks> joined_ranges(const std::vector<RecomputedBlocks>& segments) {
  std::vector<RecomputedBlocks> ranges;
  for (const RecomputedBlocks& segment : segments) {
    const int size = segment.end - segment.begin;
    const bool follows = !ranges.empty() && ranges.back().end == segment.begin;
    const bool is_whole = follows && (ranges.back().end - ranges.back().begin) % ranges.back().segment == 0;
    if (is_whole && size <= ranges.back().segment) {
      ranges.back().end = segment.end;
    } else {
      ranges.push_back({segment.begin, segment.end, size});
    }
  }
  return ranges;
}

}  // namespace

std::vector<RecomputedBlocks> recomputed_segments(const Recompute& policy, int num_blocks) {
  std::vector<RecomputedBlocks> ranges = policy.listed, segments;
  if (policy.keeps == Recompute::Keeps::SegmentInputs) ranges = {{0, num_blocks, policy.blocks}};
  for (const RecomputedBlocks& range : ranges) {
    const int last = std::min(range.end, num_blocks);
    for (int begin = range.begin; begin < last; begin += range.segment) {
      const int end = std::min(begin + range.segment, last);
      segments.push_back({begin, end, end - begin});
    }
  }
  return segments;
}

std::string recompute_text(const std::vector<RecomputedBlocks>& segments, int num_blocks) {
  const std::vector<RecomputedBlocks> ranges = joined_ranges(segments);
  const bool is_all = ranges.size() == 1 && ranges[0].begin == 0 && ranges[0].end == num_blocks;
  if (is_all) return ranges[0].segment == 1 ? "full" : cat(kEvery, ranges[0].segment);
  return list_text(ranges);
}

std::vector<std::string> recompute_entries(const MemorySpec& spec) {
  std::vector<std::string> entries;
  for (const std::string_view entry : parts_of(spec.recompute, ',')) entries.emplace_back(stripped(entry));
  return entries;
}

std::optional<Recompute> recompute_policy(std::string_view entry) {
  using enum Recompute::Keeps;
  if (entry == "none" || entry == kAutoRecompute) return Recompute{};
  if (entry == "selective") return Recompute{Selected, 0};
  if (entry == "full") return Recompute{SegmentInputs, 1};
  if (entry.starts_with(kBlocks)) {
    BlockList list = block_list(entry.substr(kBlocks.size()));
    if (!list.faults.empty()) return {};
    return Recompute{Listed, 0, std::move(list.ranges)};
  }
  if (!entry.starts_with(kEvery)) return {};
  const Digits count = digits(entry.substr(kEvery.size()));
  if (!count.only || count.value < 1 || count.value > kMaxBlocks) return {};
  return Recompute{SegmentInputs, count.value};
}

std::string recompute_faults(const MemorySpec& spec) {
  const std::vector<std::string> entries = recompute_entries(spec);
  std::vector<std::string> faults;
  for (const std::string& entry : entries) {
    if (const std::string fault = entry_faults(entry, entries.size()); !fault.empty()) faults.push_back(fault);
  }
  return joined(faults, "; ");
}

std::string missing_blocks(const MemorySpec& spec, const std::vector<int>& num_blocks) {
  const std::vector<std::string> entries = recompute_entries(spec);
  if (entries.size() != 1 && entries.size() != num_blocks.size()) return "";
  std::vector<std::string> missing;
  for (size_t stage = 0; stage < num_blocks.size(); ++stage) {
    const auto policy = recompute_policy(entries[entries.size() == 1 ? 0 : stage]);
    if (!policy) continue;
    std::vector<std::string> ranges;
    for (const RecomputedBlocks& range : policy->listed) {
      if (range.end > num_blocks[stage]) ranges.push_back(item_text(range));
    }
    if (ranges.empty()) continue;
    missing.push_back(cat(joined(ranges), " of stage ", stage, ", which has ", counted(num_blocks[stage], "block")));
  }
  return joined(missing, "; ");
}

std::string nearest_recompute(const MemorySpec& spec, const std::vector<int>& num_blocks) {
  std::vector<std::string> entries = recompute_entries(spec);
  const size_t num_stages = std::max<size_t>(num_blocks.size(), 1);
  const bool several = entries.size() > 1;
  if (several) entries.resize(num_stages, std::string(entries.back()));
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool known = !num_blocks.empty();
    const int blocks = !known ? kMaxBlocks + 1 : several ? num_blocks[i] : std::ranges::min(num_blocks);
    if (several && entries[i] == kAutoRecompute) entries[i] = "none";
    entries[i] = nearest_entry(entries[i], blocks);
  }
  return joined(entries, ",");
}

std::vector<int> stage_blocks(const RunSpec& spec, int num_stages) {
  const std::vector<int> units = stage_units(spec, num_stages);
  const int parts = model::parts_of_layer(spec.model), head = units.back() - 1;
  std::vector<int> blocks;
  for (size_t stage = 0; stage + 1 < units.size(); ++stage) {
    const int begin = std::max(units[stage], 1) - 1, end = std::min(units[stage + 1], head) - 1;
    blocks.push_back(end > begin ? (end - 1) / parts - begin / parts + 1 : 0);
  }
  return blocks;
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
