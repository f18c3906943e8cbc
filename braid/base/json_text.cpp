// Takes the library's messages apart.
#include "braid/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "braid/base/text.h"

namespace braid {
namespace {

std::string behind(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == text.npos ? text : text.substr(at + mark.size());
}

int64_t line_at(std::string_view text, size_t at) {
  const auto seen = text.substr(0, at);
  return 1 + std::count(seen.begin(), seen.end(), '\n');
}

// The line of a text that is JSON on which more lists and objects are open than anybody writes; 0 for none. Trees are
// copied and shown one in another, and the stack has an end.
int64_t too_deep_line(std::string_view text) {
  constexpr int kMostOpen = 1000;
  int open = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++at;
      continue;
    }
    open += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (open > kMostOpen) return line_at(text, at);
  }
  return 0;
}

// Calls `parse`, which fills a tree from the text.
template <class Parse>
JsonFault fault_of(std::string_view text, const Parse& parse) {
  try {
    parse();
    if (const int64_t line = too_deep_line(text)) return {line, "has more than 1000 lists and objects in one another"};
    return {};
  } catch (const nlohmann::json::parse_error& error) {
    const bool is_empty = text.find_first_not_of(" \t\r\n") == text.npos;
    return {line_at(text, std::max<size_t>(error.byte, 1) - 1),
            "is not JSON: " + (is_empty ? "it is empty" : in_words(error))};
  } catch (const nlohmann::json::exception& error) {  // a number that no type holds
    return {1, "is not JSON that can be read: " + in_words(error)};
  }
}

// Characters of a text that count how many of them were taken: the library tells of a key when it has taken its closing
// quotation mark and nothing behind it.
struct CountingReader {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  size_t* taken = nullptr;

  reference operator*() const { return *at; }
  CountingReader& operator++() {
    ++at;
    ++*taken;
    return *this;
  }
  CountingReader operator++(int) {
    CountingReader before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingReader& other) const { return at == other.at; }
};

// Walks through a text and finds keys that their object has already.
class KeyWatch final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit KeyWatch(std::string_view text) : text_(text) {}

  // Of a text that is JSON.
  JsonFault fault() {
    const char* const begin = text_.data();
    nlohmann::json::sax_parse(CountingReader{begin, &taken_}, CountingReader{begin + text_.size(), &taken_}, this);
    if (num_repeated_ == 0) return {};
    return {line_, cat("has the key ", first_, " twice in one object",
                       num_repeated_ > 1 ? cat(", and ", num_repeated_ - 1, " more such keys") : "")};
  }

  bool start_object(size_t) override {
    objects_.emplace_back();
    return true;
  }
  bool end_object() override {
    objects_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (!objects_.back().insert(name).second && num_repeated_++ == 0) {
      first_ = nlohmann::json(name).dump();
      line_ = line_at(text_, taken_);
    }
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::string_view text_;
  size_t taken_ = 0;
  std::vector<std::unordered_set<std::string>> objects_;  // keys of those that are open
  std::string first_;
  int64_t line_ = 0, num_repeated_ = 0;
};

}  // namespace

JsonFault read_json(std::string_view text, nlohmann::json& tree, RepeatedKeys keys) {
  const JsonFault fault = fault_of(text, [&] { tree = nlohmann::json::parse(text); });
  return fault.line == 0 && keys == RepeatedKeys::Refused ? KeyWatch(text).fault() : fault;
}

JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree) {
  return fault_of(text, [&] { tree = nlohmann::ordered_json::parse(text); });
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing value - invalid
// literal; last read: 'tru}'", where what was read may be most of a file.
std::string in_words(const std::exception& error) {
  const std::string message = behind(error.what(), "] ");
  if (!message.starts_with("parse error")) return message;
  return behind(behind(message.substr(0, message.find("; last read: ")), ": "), " - ");
}

}  // namespace braid
