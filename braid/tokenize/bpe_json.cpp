// The reader of BPE models in a tokenizer.json. bpe_vocabulary.h interprets vocabulary and merges.
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/bpe_vocabulary.h"
#include "braid/tokenize/json_parts.h"
#include "braid/tokenize/marked_spaces_tokenizer.h"
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/tokenizer_file.h"

namespace braid::tokenize {
namespace {

using Json = nlohmann::json;

// Returns a regular expression that matches only `text`.
std::string matching_alone(const std::string& text) {
  std::string regex;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}-").find(c) != std::string_view::npos) regex.push_back('\\');
    regex.push_back(c);
  }
  return regex;
}

class ByteLevelReader {
 public:
  explicit ByteLevelReader(Faults& faults) : faults_(faults), vocabulary_(faults) {}

  BpeModel read(const Json& json) {
    read_normalizer(member(json, "normalizer"));
    read_pretokenizer(member(json, "pre_tokenizer"));
    read_model(member(json, "model"));
    read_added_tokens(
        member(json, "added_tokens"), {"single_word", "lstrip", "rstrip"}, faults_,
        [this](const std::string& content, int64_t id, TokenKind kind) { vocabulary_.add_added(content, id, kind); });
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
      return faults_.add("model.type", cat("must be BPE or WordPiece, is ", type.empty() ? "missing" : type));
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
    if (prefix.is_null() || is_true(prefix)) {  // the default is true
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
    // "Removed" with invert keeps the matches and drops the text between them. The known patterns leave no such text.
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
  return ByteLevelReader(faults).read(json);
}

}  // namespace braid::tokenize
