// Builds JSON trees from the events of the library's parser, and shortens its messages.
#include "braid/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <unordered_set>
#include <utility>
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

constexpr size_t kMostOpen =
    1000;  // lists and objects in one another; copying and printing a tree recurse, and the stack is limited

// Returns the line at which more than kMostOpen lists and objects are open; 0 if there is none.
// REQUIRES: the text is JSON up to that line.
int64_t too_deep_line(std::string_view text) {
  size_t open = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++at;
      continue;
    }
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    if (open > kMostOpen) return line_at(text, at);
  }
  return 0;
}

// Builds a tree from the parser's events. Continues after a repeated key, so that text that is not JSON is refused for
// that reason.
template <class Json>
class TreeBuilder final {
 public:
  explicit TreeBuilder(Json& root) : root_(root) {}

  bool has_repeated_key() const { return has_repeated_key_; }
  bool is_too_deep() const { return is_too_deep_; }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(typename Json::binary_t&) { return false; }  // text has no binary values
  bool start_object(size_t) { return begin({Json::object(), {}}); }
  bool start_array(size_t) { return begin({Json::array(), {}}); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }

  bool key(std::string& name) {
    Open& object = open_.back();
    auto& members = object.tree.template get_ref<typename Json::object_t&>();
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      if (!object.names.insert(name).second) has_repeated_key_ = true;
      object.member = &members.emplace_back(std::move(name), Json()).second;
    } else {
      const auto [member, is_new] = members.try_emplace(std::move(name));
      if (!is_new) has_repeated_key_ = true;
      object.member = &member->second;
    }
    return true;
  }

  template <class Error>
  bool parse_error(size_t, const std::string&, const Error& error) {
    throw error;
  }

 private:
  // A list or an object that is not closed yet.
  struct Open {
    Json tree;
    std::unordered_set<std::string> names;  // keys so far, if the object keeps their order
    Json* member = nullptr;                 // value of the key that was read last
  };

  template <class Value>
  bool put(Value&& value) {
    if (open_.empty()) {
      root_ = Json(std::forward<Value>(value));
    } else if (open_.back().member) {
      *open_.back().member = Json(std::forward<Value>(value));
    } else {
      open_.back().tree.template get_ref<typename Json::array_t&>().emplace_back(std::forward<Value>(value));
    }
    return true;
  }

  bool begin(Open&& open) {
    open_.push_back(std::move(open));
    is_too_deep_ = open_.size() > kMostOpen;
    return !is_too_deep_;  // false ends the parse
  }

  bool end() {
    Json tree = std::move(open_.back().tree);
    open_.pop_back();
    return put(std::move(tree));
  }

  Json& root_;
  std::vector<Open> open_;
  bool has_repeated_key_ = false, is_too_deep_ = false;
};

// An iterator over a text that counts the characters that were read. The library reports a key when it has read its
// closing quotation mark and nothing after it.
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

// Parses a text and finds keys that occur twice in one object.
class KeyWatch final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit KeyWatch(std::string_view text) : text_(text) {}

  // Returns the fault of the text. REQUIRES: the text is JSON.
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
  std::vector<std::unordered_set<std::string>> objects_;  // keys of the objects that are open
  std::string first_;
  int64_t line_ = 0, num_repeated_ = 0;
};

template <class Json>
JsonFault read_tree(std::string_view text, Json& tree) {
  if (const size_t nul = nul_in(text); nul != text.npos) return {line_at(text, nul), "is not JSON: it has a NUL"};
  try {
    TreeBuilder<Json> builder(tree);
    Json::sax_parse(text.begin(), text.end(), &builder);
    if (builder.is_too_deep()) return {too_deep_line(text), "has more than 1000 lists and objects in one another"};
    return builder.has_repeated_key() ? KeyWatch(text).fault() : JsonFault{};
  } catch (const nlohmann::json::parse_error& error) {
    const bool is_empty = text.find_first_not_of(" \t\r\n") == text.npos;
    return {line_at(text, std::max<size_t>(error.byte, 1) - 1),
            "is not JSON: " + (is_empty ? "it is empty" : in_words(error))};
  } catch (const nlohmann::json::exception& error) {  // a number that fits no type
    return {1, "is not JSON that can be read: " + in_words(error)};
  } catch (const std::bad_alloc&) {
    return {1, cat("has ", text.size(), " bytes, and there is no memory for what they say")};
  }
}

}  // namespace

JsonFault read_json(std::string_view text, nlohmann::json& tree) { return read_tree(text, tree); }
JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree) { return read_tree(text, tree); }

size_t nul_in(std::string_view text) { return text.find('\0'); }

// Shortens a message of the library, such as "[json.exception.parse_error.101] parse error at line 1, column 5: syntax
// error while parsing value - invalid literal; last read: 'tru}'". The text after "last read" may be most of a file.
std::string in_words(const std::exception& error) {
  const std::string message = behind(error.what(), "] ");
  if (!message.starts_with("parse error")) return message;
  return behind(behind(message.substr(0, message.find("; last read: ")), ": "), " - ");
}

}  // namespace braid
