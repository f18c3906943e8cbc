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
