// Finds and reads tokenizer files, such as tokenizer.json, and chooses the end-of-text token.
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
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/tokenize/wordpiece_file.h"

namespace braid::tokenize {
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

// Returns the value of `key` in tokenizer_config.json, which is a string or an object with "content"; empty if there is
// none.
std::string configured(const char* key, const fs::path& folder, Faults& faults) {
  const fs::path path = folder / "tokenizer_config.json";
  if (path_kind(path) == PathKind::Nothing) return "";
  const auto json = json_of(path, faults);
  if (!json || !json->is_object()) return "";
  const Json& value = member(*json, key);
  const Json& name = value.is_object() ? member(value, "content") : value;
  return name.is_string() ? name.get<std::string>() : "";
}

std::vector<std::string> usual_ends() {
  return {"<|endoftext|>",
          "<|end_of_text|>",
          "</s>",
          "<eos>",
          "<|im_end|>",
          "<\xEF\xBD\x9C"
          "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};  // the last is DeepSeek's
}

// Returns true if some text is encoded as this token: the token is a single byte, or a merge forms it.
bool stands_for_text(const BpeModel& model, size_t id) {
  const BpeToken& token = model.tokens[id];
  if (token.kind == TokenKind::Text && token.bytes.size() == 1) return true;
  return std::any_of(model.merges.begin(), model.merges.end(),
                     [id](const BpeMerge& merge) { return merge.result == id; });
}

bool stands_for_text(const WordPieceModel& model, size_t id) { return static_cast<int>(id) == model.unknown; }

const std::string& name_of(const BpeToken& token) { return token.bytes; }
const std::string& name_of(const WordPieceToken& token) { return token.spelling; }

// Returns the token that ends texts: the last with the first of `names` that is a token. Adds a fault and returns
// nothing if there is none, or if texts are encoded as that token.
template <class Model>
std::optional<size_t> end_among(const std::vector<std::string>& names, const Model& model, Faults& faults) {
  for (const auto& name : names) {
    for (size_t id = model.tokens.size(); id-- > 0;) {
      if (model.tokens[id].kind == TokenKind::Hole || name_of(model.tokens[id]) != name) continue;
      if (!stands_for_text(model, id)) return id;
      faults.add("end of text", cat("must be a token of its own, and \"", name, "\" is one that texts become"));
      return std::nullopt;
    }
  }
  faults.add("end of text", cat("the vocabulary has none of the tokens ", joined(names)));
  return std::nullopt;
}

// Makes the end-of-text token special, so that its name in a text is encoded as ordinary text.
void choose_end_of_text(BpeModel& model, const fs::path& folder, Faults& faults) {
  const std::string given = configured("eos_token", folder, faults);
  const auto end = end_among(given.empty() ? usual_ends() : std::vector{given}, model, faults);
  if (!end) return;
  model.end_of_text = static_cast<int>(*end);
  model.tokens[*end].kind = TokenKind::Special;
}

void choose_end_of_text(WordPieceModel& model, const fs::path& folder, Faults& faults) {
  std::string given = configured("eos_token", folder, faults);
  if (given.empty()) given = configured("sep_token", folder, faults);
  auto names = given.empty() ? usual_ends() : std::vector{given};
  if (given.empty()) names.emplace_back("[SEP]");
  const auto end = end_among(names, model, faults);
  if (!end) return;
  model.end_of_text = static_cast<int>(*end);
  model.tokens[*end] = {model.tokens[*end].spelling, TokenKind::Special, false};
}

}  // namespace

namespace {

// The files of a tokenizer: a folder, and the tokenizer.json to read unless the folder has the two files of BPE.
struct TokenizerPlace {
  fs::path folder;
  fs::path json;  // empty: vocab.json and merges.txt
};

TokenizerPlace place_of(const std::string& path, Faults& faults) {
  const fs::path given(path);
  if (path_kind(path) != PathKind::Folder) return {given.parent_path(), given};
  const auto is_there = [&](const char* file) { return path_kind(given / file) != PathKind::Nothing; };
  if (is_there("tokenizer.json")) return {given, given / "tokenizer.json"};
  if (!is_there("vocab.json") && !is_there("merges.txt")) {
    faults.add("", "the folder has neither tokenizer.json nor vocab.json and merges.txt");
    faults.throw_any();
  }
  return {given, {}};
}

// Returns the spellings that tokenizer_config.json gives, else the usual ones.
MaskSpellings mask_spellings(const fs::path& folder, Faults& faults) {
  MaskSpellings names;
  for (const auto& [key, name] : {std::pair{"mask_token", &names.mask},
                                  {"cls_token", &names.begin},
                                  {"sep_token", &names.end},
                                  {"pad_token", &names.padding}}) {
    const std::string given = configured(key, folder, faults);
    if (!given.empty()) *name = given;
  }
  return names;
}

// Completes a model that was read.
template <class Model>
Model completed(Model model, const TokenizerPlace& place, Faults& faults) {
  if (!model.tokens.empty()) choose_end_of_text(model, place.folder, faults);
  faults.throw_any();
  return model;
}

}  // namespace

BpeModel read_bpe(const std::string& path) {
  Faults faults(path);
  const TokenizerPlace place = place_of(path, faults);
  if (place.json.empty()) return completed(read_two_files(place.folder, faults), place, faults);
  const auto json = json_of(place.json, faults);
  return completed(json ? bpe_of_json(*json, faults) : BpeModel(), place, faults);
}

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  Faults faults(path);
  const TokenizerPlace place = place_of(path, faults);
  if (place.json.empty()) return bpe_tokenizer(completed(read_two_files(place.folder, faults), place, faults));
  const auto json = json_of(place.json, faults);
  if (json && is_wordpiece(*json)) {
    WordPieceModel model = wordpiece_of_json(*json, faults);
    model.masking = mask_spellings(place.folder, faults);
    return wordpiece_tokenizer(completed(std::move(model), place, faults));
  }
  return bpe_tokenizer(completed(json ? bpe_of_json(*json, faults) : BpeModel(), place, faults));
}

}  // namespace braid::tokenize
