// Spaces are marked by the normalizer (Prepend, Replace) or by the pre-tokenizer (Metaspace); by one of them.
#include "braid/tokenize/marked_spaces_json.h"

#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/tokenize/json_parts.h"

namespace braid::tokenize {
namespace {

using Json = nlohmann::json;

constexpr const char* kMarkOfSpace = "\xE2\x96\x81";  // U+2581

class MarkedReader {
 public:
  explicit MarkedReader(Faults& faults) : faults_(faults), vocabulary_(faults, Spelling::Plain) {}

  BpeModel read(const Json& json) {
    read_normalizer(member(json, "normalizer"));
    read_pretokenizer(member(json, "pre_tokenizer"));
    if (marked_by_ != 1) {
      faults_.add("normalizer", "spaces must become U+2581 once, by Replace or by the pre-tokenizer Metaspace");
    }
    read_model(member(json, "model"));
    read_added(member(json, "added_tokens"));
    BpeModel model = vocabulary_.finish(whole_pieces_);
    model.first_tokens = FirstTokens::Characters;
    model.spaces = spaces_;
    return model;
  }

 private:
  void read_normalizer(const Json& normalizer) {
    bool prepends = false;
    for (const Json& step : steps_of(normalizer, "normalizers")) {
      const bool first = marked_by_ == 0;
      if (first && type_of(step) == "Prepend" && member(step, "prepend") == kMarkOfSpace) {
        prepends = true;
      } else if (first && type_of(step) == "Replace" && member(member(step, "pattern"), "String") == " " &&
                 member(step, "content") == kMarkOfSpace) {
        ++marked_by_;
        spaces_.front = prepends ? SpaceInFront::Always : SpaceInFront::Never;
      } else {
        faults_.add("normalizer", cat("must be Prepend and Replace of spaces by U+2581, is ", shown(step)));
      }
    }
  }

  void read_pretokenizer(const Json& part) {
    for (const Json& step : steps_of(part, "pretokenizers")) {
      if (type_of(step) != "Metaspace" || member(step, "replacement") != kMarkOfSpace) {
        faults_.add("pre_tokenizer", cat("must be null or Metaspace with U+2581, is ", shown(step)));
        continue;
      }
      ++marked_by_;
      const Json &split = member(step, "split"), &scheme = member(step, "prepend_scheme");
      spaces_.cut = split.is_null() || is_true(split);
      const bool former = member(step, "add_prefix_space") == false;  // older files have that alone
      if (scheme == "never" || (scheme.is_null() && former)) {
        spaces_.front = SpaceInFront::Never;
      } else if (scheme == "first") {
        spaces_.front = SpaceInFront::AtTheBegin;
      } else if (scheme == "always" || scheme.is_null()) {
        spaces_.front = SpaceInFront::UnlessThere;
      } else {
        faults_.add("pre_tokenizer", cat("prepend_scheme must be always, first or never, is ", shown(scheme)));
      }
    }
  }

  void read_model(const Json& model) {
    const std::string type = type_of(model);
    if (type != "BPE") return faults_.add("model.type", cat("must be BPE, is ", type.empty() ? "missing" : type));
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = member(model, key);
      const bool is_empty = value.is_null() || value == "" || value == 0.0;
      if (!is_empty) faults_.add(cat("model.", key), cat("is not supported, is ", shown(value)));
    }
    if (is_true(member(model, "ignore_merges"))) whole_pieces_ = WholePieces::Lookup;
    vocabulary_.add_tokens(member(model, "vocab"), "model.vocab");
    add_merges_of(member(model, "merges"), vocabulary_, faults_);
  }

  void read_added(const Json& added) {
    if (added.is_null()) return;
    if (!added.is_array()) return faults_.add("added_tokens", "must be a list");
    for (const Json& token : added) {
      const Json &content = member(token, "content"), &id = member(token, "id");
      if (!content.is_string() || content == "" || !id.is_number_integer()) {
        faults_.add("added_tokens", cat("must have content and id, one is ", shown(token)));
        continue;
      }
      const bool special = is_true(member(token, "special"));
      for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
        if (!special && is_true(member(token, key))) {
          faults_.add("added_tokens", cat(key, " is not supported, has it: ", shown(content)));
        }
      }
      vocabulary_.add_added(content.get<std::string>(), id.get<int64_t>(),
                            special ? TokenKind::Special : TokenKind::Added);
    }
  }

  Faults& faults_;
  BpeVocabulary vocabulary_;
  MarkedSpaces spaces_;
  WholePieces whole_pieces_ = WholePieces::Merge;
  int marked_by_ = 0;  // how many parts mark spaces
};

}  // namespace

BpeModel marked_spaces_of_json(const Json& json, Faults& faults) { return MarkedReader(faults).read(json); }

}  // namespace braid::tokenize
