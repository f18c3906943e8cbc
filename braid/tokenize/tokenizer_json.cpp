// Reading a tokenizer.json part by part. Every part that changes tokens is either understood or a fault.
#include "braid/tokenize/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/tokenize/json_parts.h"
#include "braid/tokenize/marked_spaces_json.h"
#include "braid/tokenize/pattern_scanner.h"

namespace braid::tokenize {
namespace {

using Json = nlohmann::json;

// A string as a regular expression that matches it alone.
std::string matching_alone(const std::string& text) {
  std::string regex;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}-").find(c) != std::string_view::npos) regex.push_back('\\');
    regex.push_back(c);
  }
  return regex;
}

class Reader {
 public:
  explicit Reader(Faults& faults) : faults_(faults), vocabulary_(faults) {}

  BpeModel read(const Json& json) {
    read_normalizer(member(json, "normalizer"));
    read_pretokenizer(member(json, "pre_tokenizer"));
    read_model(member(json, "model"));
    read_added(member(json, "added_tokens"));
    BpeModel model = vocabulary_.finish(whole_pieces_);
    model.pretokenizer = std::move(pretokenizer_);
    model.normalizer = normalizer_;
    return model;
  }

 private:
  void read_normalizer(const Json& normalizer) {
    for (const Json& step : steps_of(normalizer, "normalizers")) {
      if (type_of(step) == "NFC") {
        normalizer_ = Normalizer::FormC;
      } else {
        faults_.add("normalizer", cat("must be null or NFC, is ", shown(step)));
      }
    }
  }

  void read_model(const Json& model) {
    const std::string type = type_of(model);
    // Old files of BPE models have no type.
    const bool untyped = type.empty() && member(model, "merges").is_array();
    if (type != "BPE" && !untyped) {
      return faults_.add("model.type", cat("must be BPE, is ", type.empty() ? "missing" : type));
    }
    const auto empty = [&](const char* key) {
      const Json& value = member(model, key);
      const bool is_empty = value.is_null() || value == "" || value == false || value == 0.0;
      if (!is_empty) faults_.add(cat("model.", key), cat("is not supported, is ", shown(value)));
    };
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) empty(key);
    if (is_true(member(model, "ignore_merges"))) whole_pieces_ = WholePieces::Lookup;
    vocabulary_.add_tokens(member(model, "vocab"), "model.vocab");
    add_merges_of(member(model, "merges"), vocabulary_, faults_);
  }

  void read_added(const Json& added) {
    if (added.is_null()) return;
    if (!added.is_array()) return faults_.add("added_tokens", "must be a list");
    for (const Json& token : added) {
      const Json& content = member(token, "content");
      const Json& id = member(token, "id");
      if (!content.is_string() || content == "" || !id.is_number_integer()) {
        faults_.add("added_tokens", cat("must have content and id, one is ", shown(token)));
        continue;
      }
      const bool special = is_true(member(token, "special"));
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (!special && is_true(member(token, key))) {
          faults_.add("added_tokens", cat(key, " is not supported, has it: ", shown(content)));
        }
      }
      const TokenKind cut = is_true(member(token, "normalized")) ? TokenKind::AddedToForm : TokenKind::Added;
      vocabulary_.add_added(content.get<std::string>(), id.get<int64_t>(), special ? TokenKind::Special : cut);
    }
  }

  void read_pretokenizer(const Json& part) {
    const std::vector<Json> steps = steps_of(part, "pretokenizers");
    for (size_t i = 0; i < steps.size(); ++i) read_step(steps[i], i + 1 == steps.size());
    if (steps.empty() || type_of(steps.back()) != "ByteLevel") {
      faults_.add("pre_tokenizer",
                  "must be ByteLevel, or a Sequence that ends in it: only byte-level BPE is supported");
    }
  }

  void read_step(const Json& step, bool is_last) {
    const std::string type = type_of(step);
    if (type == "ByteLevel" && is_last) return read_byte_level(step);
    if (type == "Split") return read_split(step);
    if (type == "Digits") {
      return add_stage(is_true(member(step, "individual_digits")) ? R"(\p{N})" : R"(\p{N}+)");
    }
    faults_.add("pre_tokenizer", cat("only Split, Digits and a last ByteLevel are supported, is ", shown(step)));
  }

  void read_byte_level(const Json& step) {
    const Json& prefix = member(step, "add_prefix_space");
    if (prefix.is_null() || is_true(prefix)) {  // its default is true
      faults_.add("pre_tokenizer", "ByteLevel.add_prefix_space must be false: text would not come back as it was");
    }
    const Json& use_regex = member(step, "use_regex");
    if (use_regex.is_null() || is_true(use_regex)) add_stage(std::string(kGpt2Regex));
  }

  void read_split(const Json& step) {
    const Json& pattern = member(step, "pattern");
    const Json& regex = member(pattern, "Regex");
    const Json& literal = member(pattern, "String");
    if (!regex.is_string() && !literal.is_string()) {
      return faults_.add("pre_tokenizer", cat("Split must have a Regex or String, is ", shown(step)));
    }
    const std::string expression =
        regex.is_string() ? regex.get<std::string>() : matching_alone(literal.get<std::string>());
    const Json& behavior = member(step, "behavior");
    // "Removed" with invert keeps the matches and drops what lies between; the known patterns leave nothing between.
    const bool keeps_matches = behavior == "Removed" && is_true(member(step, "invert")) && pattern_scanner(expression);
    if (behavior != "Isolated" && !keeps_matches) {
      faults_.add("pre_tokenizer", cat("the behavior of Split must be \"Isolated\", is ", shown(behavior)));
    }
    add_stage(expression);
  }

  void add_stage(const std::string& regex) {
    try {
      cut_by({{regex}});
      pretokenizer_.regexes.push_back(regex);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) faults_.add("pre_tokenizer", text(problem));
    }
  }

  Faults& faults_;
  BpeVocabulary vocabulary_;
  PretokenizerSpec pretokenizer_;
  WholePieces whole_pieces_ = WholePieces::Merge;
  Normalizer normalizer_ = Normalizer::None;
};

}  // namespace

BpeModel bpe_of_json(const Json& json, Faults& faults) {
  if (!json.is_object()) {
    faults.add("tokenizer.json", "must be an object");
    return {};
  }
  if (is_true(member(member(json, "model"), "byte_fallback"))) return marked_spaces_of_json(json, faults);
  return Reader(faults).read(json);
}

}  // namespace braid::tokenize
