// Functions on plain strings.
#include "braid/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "braid/base/utf8.h"

namespace braid {
namespace {

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

void append_escaped(std::string& shown, std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      shown += "\\n";
    } else if (byte == '\t') {
      shown += "\\t";
    } else {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      shown += {'\\', 'x', kDigits[value / 16], kDigits[value % 16]};
    }
  }
}

}  // namespace

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string exact(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (std::abs(bytes) >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return cat(fixed(bytes, unit == 0 ? 0 : 1), " ", units[unit]);
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) all += separator;
    all += parts[i];
  }
  return all;
}

std::string printable(std::string_view text, size_t most, LineBreaks breaks) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char character = utf8_at(text, at);
    if (at + character.bytes > most) break;
    const std::string_view bytes = text.substr(at, character.bytes);
    at += character.bytes;
    const bool breaks_line = character.code == '\n' && breaks == LineBreaks::Kept;
    if (breaks_line || (character.code != kNotUtf8 && !is_control(character.code))) {
      shown += bytes;
    } else {
      append_escaped(shown, bytes);
    }
  }
  return at < text.size() ? cat(shown, "... (", text.size(), " bytes)") : shown;
}

std::string quoted_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", unsigned{byte});
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  const std::string wanted = lower_case(word);
  int64_t best_distance = static_cast<int64_t>(std::max<size_t>(word.size() / 2, 2)) + 1;
  for (const auto& candidate : candidates) {
    const auto longer = static_cast<int64_t>(word.size()) - static_cast<int64_t>(candidate.size());
    if (std::abs(longer) >= best_distance) continue;  // the edit distance is at least this difference
    const int distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace braid
