// Finds and reads tokenizer files, such as tokenizer.json. bpe_vocabulary.h interprets vocabulary and merges.
#include "braid/tokenize/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/tokenize/bpe_vocabulary.h"
#include "braid/tokenize/json_parts.h"
#include "braid/tokenize/marked_spaces_tokenizer.h"
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/tokenizer_identity.h"

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
  return Reader(faults).read(json);
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Returns nothing and adds a fault if the file is empty or cannot be read.
std::optional<std::string> content_of(const fs::path& path, Faults& faults) {
  try {
    auto content = file_content(path, kMaxTokenizerBytes);
    if (!content.empty()) return content;
    faults.add(path.filename().string(), "is empty");
  } catch (const IoError& error) {
    faults.add("", error.what());
  }
  return std::nullopt;
}

std::optional<Json> json_of(const fs::path& path, Faults& faults) {
  const auto content = content_of(path, faults);
  if (!content) return std::nullopt;
  Json json;
  const JsonFault fault = read_json(*content, json);
  if (fault.line == 0) return json;
  faults.add(cat(path.filename().string(), ":", fault.line), fault.why);
  return std::nullopt;
}

// Adds the merges of a merges.txt. A merge is a line "left right"; lines "#version: ..." are skipped.
void add_merges(const std::string& content, BpeVocabulary& vocabulary) {
  std::istringstream in(content);
  int64_t number = 1;
  for (std::string line; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) vocabulary.add_merge(line, cat("merges.txt:", number, " "));
  }
}

BpeModel read_two_files(const fs::path& folder, Faults& faults) {
  BpeVocabulary vocabulary(faults);
  if (const auto json = json_of(folder / "vocab.json", faults)) vocabulary.add_tokens(*json, "vocab.json");
  if (const auto content = content_of(folder / "merges.txt", faults)) add_merges(*content, vocabulary);
  BpeModel model = vocabulary.finish(WholePieces::Merge);
  model.pretokenizer.regexes = {std::string(kGpt2Regex)};
  return model;
}

// Returns the value of "eos_token", which is a string or an object with "content"; empty if there is none.
std::string configured_end(const fs::path& folder, Faults& faults) {
  const fs::path path = folder / "tokenizer_config.json";
  if (path_kind(path) == PathKind::Nothing) return "";
  const auto json = json_of(path, faults);
  if (!json || !json->is_object()) return "";
  Json end = json->value("eos_token", Json());
  if (end.is_object()) end = end.value("content", Json());
  return end.is_string() ? end.get<std::string>() : "";
}

// Returns true if some text is encoded as this token: the token is a single byte, or a merge forms it.
bool stands_for_text(const BpeModel& model, size_t id) {
  const BpeToken& token = model.tokens[id];
  if (token.kind == TokenKind::Text && token.bytes.size() == 1) return true;
  return std::any_of(model.merges.begin(), model.merges.end(),
                     [id](const BpeMerge& merge) { return merge.result == id; });
}

// Makes the end-of-text token special, so that its name in a text is encoded as ordinary text.
void choose_end_of_text(BpeModel& model, const std::string& configured, Faults& faults) {
  std::vector<std::string> names = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"};
  names.push_back(
      "<\xEF\xBD\x9C"
      "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>");  // DeepSeek
  if (!configured.empty()) names = {configured};
  for (const auto& name : names) {
    for (size_t id = model.tokens.size(); id-- > 0;) {
      if (model.tokens[id].kind == TokenKind::Hole || model.tokens[id].bytes != name) continue;
      if (stands_for_text(model, id)) {
        return faults.add("end of text",
                          cat("must be a token of its own, and \"", name, "\" is one that texts become"));
      }
      model.end_of_text = static_cast<int>(id);
      model.tokens[id].kind = TokenKind::Special;
      return;
    }
  }
  faults.add("end of text", cat("the vocabulary has none of the tokens ", joined(names)));
}

}  // namespace

BpeModel read_bpe(const std::string& path) {
  Faults faults(path);
  const fs::path given(path);
  const bool is_folder = path_kind(path) == PathKind::Folder;
  const fs::path json_path = is_folder ? given / "tokenizer.json" : given;
  const fs::path folder = is_folder ? given : given.parent_path();
  BpeModel model;
  const auto is_there = [](const fs::path& file) { return path_kind(file) != PathKind::Nothing; };
  if (is_folder && !is_there(json_path)) {
    if (!is_there(given / "vocab.json") && !is_there(given / "merges.txt")) {
      faults.add("", "the folder has neither tokenizer.json nor vocab.json and merges.txt");
      faults.throw_any();
    }
    model = read_two_files(given, faults);
  } else if (const auto json = json_of(json_path, faults)) {
    model = bpe_of_json(*json, faults);
  }
  if (!model.tokens.empty()) choose_end_of_text(model, configured_end(folder, faults), faults);
  faults.throw_any();
  return model;
}

}  // namespace braid::tokenize
