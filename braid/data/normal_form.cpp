// Decompose, order, compose; only where a character stands that may change, with the one before it.
#include "braid/data/normal_form.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "braid/data/unicode_classes.h"
#include "braid/data/unicode_composition.h"

namespace braid {
namespace {

constexpr uint32_t kHangul = 0xAC00, kNumHangul = 11172, kL = 0x1100, kV = 0x1161, kT = 0x11A7;
constexpr uint32_t kNumL = 19, kNumV = 21, kNumT = 28;

struct Mark {
  uint32_t code = 0;
  uint8_t combining = 0;
};

// The tables in the forms that the steps look things up in.
class Composer {
 public:
  Composer() : combining_(kNumCodes), may_change_(kNumCodes) {
    for (const CombiningRange& range : combining_ranges()) {
      std::fill(combining_.begin() + range.first, combining_.begin() + range.last + 1, range.value);
      std::fill(may_change_.begin() + range.first, may_change_.begin() + range.last + 1, true);
    }
    for (const Decomposition& entry : decompositions()) {
      parts_.emplace(entry.code, entry);
      if (entry.composes) {
        composed_.emplace(pair_of(entry.first, entry.second), entry.code);
        may_change_[entry.second] = true;
      } else {
        may_change_[entry.code] = true;
      }
    }
    std::fill(may_change_.begin() + kV, may_change_.begin() + kV + kNumV, true);
    std::fill(may_change_.begin() + kT + 1, may_change_.begin() + kT + kNumT, true);
  }

  // False: nothing before this character joins it, and alone it is in the normal form. (No character that composes
  // decomposes into one that begins with such a character, so one step of decomposition tells.)
  bool may_change(uint32_t code) const { return code != kNotUtf8 && may_change_[code]; }

  // Appends the full decomposition, its marks in no order yet.
  void decompose(uint32_t code, std::vector<Mark>& marks) const {
    if (code >= kHangul && code < kHangul + kNumHangul) {
      const uint32_t place = code - kHangul;
      marks.push_back({kL + place / (kNumV * kNumT), 0});
      marks.push_back({kV + place % (kNumV * kNumT) / kNumT, 0});
      if (place % kNumT > 0) marks.push_back({kT + place % kNumT, 0});
      return;
    }
    const auto found = parts_.find(code);
    if (found == parts_.end()) {
      marks.push_back({code, combining_[code]});
      return;
    }
    decompose(found->second.first, marks);
    if (found->second.second > 0) decompose(found->second.second, marks);
  }

  // The character made of the two, or 0.
  uint32_t compose(uint32_t first, uint32_t second) const {
    if (first >= kL && first < kL + kNumL && second >= kV && second < kV + kNumV) {
      return kHangul + ((first - kL) * kNumV + (second - kV)) * kNumT;
    }
    const bool is_lv = first >= kHangul && first < kHangul + kNumHangul && (first - kHangul) % kNumT == 0;
    if (is_lv && second > kT && second < kT + kNumT) return first + (second - kT);
    const auto found = composed_.find(pair_of(first, second));
    return found == composed_.end() ? 0 : found->second;
  }

 private:
  static uint64_t pair_of(uint32_t first, uint32_t second) { return (uint64_t{first} << 32) | second; }

  std::vector<uint8_t> combining_;
  std::vector<bool> may_change_;
  std::unordered_map<uint32_t, Decomposition> parts_;
  std::unordered_map<uint64_t, uint32_t> composed_;
};

const Composer& composer() {
  static const Composer composer;
  return composer;
}

// Marks between two starters by their class, stable.
void put_in_order(std::vector<Mark>& marks) {
  for (auto begin = marks.begin(); begin != marks.end();) {
    if (begin->combining == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, marks.end(), [](const Mark& mark) { return mark.combining == 0; });
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.combining < b.combining; });
    begin = end;
  }
}

// Joins every mark that nothing blocks to the starter before it.
void compose(std::vector<Mark>& marks) {
  size_t out = 0, starter = marks.size();  // marks.size(): none yet
  for (const Mark mark : std::vector<Mark>(marks)) {
    const bool has_starter = starter < out;
    const bool is_next = has_starter && starter + 1 == out;
    const bool blocked = !is_next && (!has_starter || marks[out - 1].combining >= mark.combining);
    const uint32_t joined = has_starter && !blocked ? composer().compose(marks[starter].code, mark.code) : 0;
    if (joined > 0) {
      marks[starter].code = joined;
      continue;
    }
    if (mark.combining == 0) starter = out;
    marks[out++] = mark;
  }
  marks.resize(out);
}

}  // namespace

bool surely_normal_form_c(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Char c = utf8_at(text, at);
    if (composer().may_change(c.code)) return false;
    at += c.bytes;
  }
  return true;
}

std::string normal_form_c(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<Mark> marks;  // of the characters that are not written yet
  const auto write = [&] {
    put_in_order(marks);
    compose(marks);
    for (const Mark& mark : marks) append_utf8(out, mark.code);
    marks.clear();
  };
  Utf8Char waiting;  // one that does not change unless the next joins it
  size_t waiting_at = text.size();
  const auto pass_waiting = [&] {
    if (waiting_at < text.size()) out += text.substr(waiting_at, waiting.bytes);
    waiting_at = text.size();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    if (composer().may_change(c.code)) {
      if (waiting_at < text.size() && waiting.code != kNotUtf8) {
        composer().decompose(waiting.code, marks);
        waiting_at = text.size();
      }
      pass_waiting();
      composer().decompose(c.code, marks);
    } else {
      write();
      pass_waiting();
      waiting = c;
      waiting_at = at;
    }
    at += c.bytes;
  }
  write();
  pass_waiting();
  return out;
}

}  // namespace braid
