// A handler of JSON events that implements the grammar of the header:
//
//   { "__metadata__": { key: string }, name: { "dtype": string, "shape": [unsigned], "data_offsets": [unsigned x 2] } }
#include "braid/ckpt/safetensors_json.h"

#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"

namespace braid::ckpt {
namespace {

// An iterator over the text that writes its position to `seen`, where the handler reads it.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** seen;

  const char& operator*() const { return *at; }
  Cursor& operator++() {
    *seen = ++at;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
  bool operator!=(const Cursor& other) const { return at != other.at; }
};

std::optional<ElementType> named_type(const std::string& name) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    if (const auto type = static_cast<ElementType>(i); text(type) == name) return type;
  }
  return std::nullopt;
}

std::string all_types() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumElementTypes; ++i) names.push_back(text(static_cast<ElementType>(i)));
  return joined(names);
}

class HeaderGrammar {
 public:
  HeaderGrammar(const HeaderText& text, SafetensorsMetadata& metadata)
      : text_(text), metadata_(metadata), seen_(text.json.data()) {}

  Cursor begin() { return {text_.json.data(), &seen_}; }
  Cursor end() { return {text_.json.data() + text_.json.size(), &seen_}; }
  std::vector<ParsedTensor> take() { return std::move(tensors_); }

  bool start_object(size_t) {
    if (at_ == At::Start) {
      at_ = At::Top;
    } else if (at_ == At::Top) {
      at_ = name_ == "__metadata__" ? At::Metadata : At::Tensor;
      keys_.clear();
      tensor_ = {};
      offsets_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& key) {
    if (!(at_ == At::Top ? names_ : keys_).insert(key).second) fail(cat("duplicate key \"", key, "\""));
    if (at_ == At::Tensor && key != "dtype" && key != "shape" && key != "data_offsets") {
      fail(cat("unknown key \"", key, "\" in tensor ", name_));
    }
    (at_ == At::Top ? name_ : key_) = key;
    return true;
  }

  bool end_object() {
    if (at_ == At::Tensor) {
      for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        if (!keys_.count(needed)) fail(cat("tensor ", name_, " has no \"", needed, "\""));
      }
      tensor_.info.name = name_;
      tensors_.push_back({std::move(tensor_), offset()});
    }
    at_ = at_ == At::Top ? At::End : At::Top;
    return true;
  }

  bool start_array(size_t) {
    if (at_ != At::Tensor || key_ == "dtype") refuse("an array");
    at_ = key_ == "shape" ? At::Shape : At::Offsets;
    return true;
  }

  bool end_array() {
    if (at_ == At::Offsets) {
      if (offsets_.size() != 2) fail(cat("\"data_offsets\" of tensor ", name_, " must be [begin, end]"));
      tensor_.begin = offsets_[0];
      tensor_.end = offsets_[1];
    }
    at_ = At::Tensor;
    return true;
  }

  bool string(std::string& value) {
    if (at_ == At::Metadata) {
      metadata_[key_] = value;
      return true;
    }
    if (at_ != At::Tensor || key_ != "dtype") refuse("a string");
    const auto type = named_type(value);
    if (!type) fail(cat("type ", value, " of tensor ", name_, " must be one of: ", all_types()));
    tensor_.info.type = *type;
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (at_ != At::Shape && at_ != At::Offsets) refuse("a number");
    if (value > uint64_t{std::numeric_limits<int64_t>::max()}) fail(cat("number ", value, " overflows 63 bits"));
    (at_ == At::Shape ? tensor_.info.shape : offsets_).push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(int64_t value) { return refuse(cat("negative number ", value)); }
  bool number_float(double, const std::string& digits) { return refuse(cat("number ", digits)); }
  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool binary(nlohmann::json::binary_t&) { return refuse("binary data"); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    return fail("not JSON: " + in_words(error));
  }

 private:
  enum class At { Start, Top, Metadata, Tensor, Shape, Offsets, End };

  int64_t offset() const { return text_.offset + (seen_ - text_.json.data()); }

  [[noreturn]] bool fail(const std::string& rule) const { throw IoError(text_.path, offset(), "header: " + rule); }

  [[noreturn]] bool refuse(const std::string& what) const {
    static constexpr const char* kPlaces[] = {"an object must stand first",  "a tensor must be an object",
                                              "metadata must be strings",    "a tensor's fields have other types",
                                              "a shape holds whole numbers", "offsets are whole numbers",
                                              "nothing may follow"};
    fail(cat(what, " is not allowed here: ", kPlaces[static_cast<int>(at_)]));
  }

  const HeaderText& text_;
  SafetensorsMetadata& metadata_;
  const char* seen_;
  At at_ = At::Start;
  std::string name_, key_;              // the last keys at depth 1 and 2
  std::set<std::string> names_, keys_;  // seen at depth 1 and 2
  TensorEntry tensor_;
  std::vector<int64_t> offsets_;
  std::vector<ParsedTensor> tensors_;
};

}  // namespace

std::vector<ParsedTensor> parse_header_json(const HeaderText& text, SafetensorsMetadata& metadata) {
  if (text.json.empty() || text.json[0] != '{') throw IoError(text.path, text.offset, "header: must begin with {");
  if (const size_t nul = nul_in(text.json); nul != text.json.npos) {
    throw IoError(text.path, text.offset + static_cast<int64_t>(nul), "header: not JSON: it has a NUL");
  }
  HeaderGrammar grammar(text, metadata);
  nlohmann::json::sax_parse(grammar.begin(), grammar.end(), &grammar);
  return grammar.take();
}

}  // namespace braid::ckpt
