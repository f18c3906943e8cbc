// The reader and the writer of WordPiece models.
#include "braid/tokenize/wordpiece_file.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/json_parts.h"
#include "braid/tokenize/token_ids.h"

namespace braid::tokenize {
namespace {

using Json = nlohmann::json;

class WordPieceReader {
 public:
  explicit WordPieceReader(Faults& faults) : faults_(faults) {}

  WordPieceModel read(const Json& json) {
    read_normalizer(member(json, "normalizer"));
    read_pretokenizer(member(json, "pre_tokenizer"));
    read_model(member(json, "model"));
    read_added_tokens(member(json, "added_tokens"), {"single_word", "lstrip", "rstrip"}, faults_,
                      [this](const std::string& content, int64_t id, TokenKind kind) { add_added(content, id, kind); });
    read_decoder(member(json, "decoder"));
    ids_.add_faults(faults_);
    return std::move(model_);
  }

 private:
  void read_normalizer(const Json& normalizer) {
    model_.normalizer.reset();
    for (const Json& step : steps_of(normalizer, "normalizers")) {
      if (type_of(step) != "BertNormalizer" || model_.normalizer) {
        faults_.add("normalizer", cat("must be null or one BertNormalizer, is ", shown(step)));
        continue;
      }
      BertRules rules;
      read_flag(step, "normalizer", "clean_text", rules.clean_text);
      read_flag(step, "normalizer", "handle_chinese_chars", rules.handle_chinese_chars);
      read_flag(step, "normalizer", "lowercase", rules.lowercase);
      rules.strip_accents = rules.lowercase;
      if (!member(step, "strip_accents").is_null()) read_flag(step, "normalizer", "strip_accents", rules.strip_accents);
      model_.normalizer = rules;
    }
  }

  void read_flag(const Json& part, const char* where, const char* key, bool& flag) {
    const Json& value = member(part, key);
    if (value.is_boolean()) {
      flag = value.get<bool>();
    } else {
      faults_.add(cat(where, ".", key), cat("must be true or false, is ", shown(value)));
    }
  }

  void read_pretokenizer(const Json& part) {
    const std::vector<Json> steps = steps_of(part, "pretokenizers");
    if (steps.size() != 1 || type_of(steps[0]) != "BertPreTokenizer") {
      faults_.add("pre_tokenizer", cat("must be BertPreTokenizer, is ", shown(part)));
    }
  }

  void read_model(const Json& model) {
    read_vocabulary(member(model, "vocab"));
    const Json &unknown = member(model, "unk_token"), &prefix = member(model, "continuing_subword_prefix"),
               &most = member(model, "max_input_chars_per_word");
    if (!unknown.is_string() || !id_of_.contains(unknown.get<std::string>())) {
      faults_.add("model.unk_token", cat("must be a token of the vocabulary, is ", shown(unknown)));
    } else {
      model_.unknown = static_cast<int>(id_of_.at(unknown.get<std::string>()));
    }
    if (prefix.is_string()) {
      model_.prefix = prefix.get<std::string>();
    } else {
      faults_.add("model.continuing_subword_prefix", cat("must be a string, is ", shown(prefix)));
    }
    if (most.is_number_unsigned()) {
      model_.max_word_chars = most.get<size_t>();
    } else {
      faults_.add("model.max_input_chars_per_word", cat("must be a whole number from 0 on, is ", shown(most)));
    }
  }

  void read_vocabulary(const Json& vocab) {
    if (!vocab.is_object()) return faults_.add("model.vocab", "must be an object of tokens and ids");
    ids_.set_num_listed(static_cast<int64_t>(vocab.size()));
    for (const auto& [spelling, id] : vocab.items()) {
      if (!id.is_number_integer()) {
        ids_.refuse(spelling);
      } else if (ids_.take(id.get<int64_t>(), spelling)) {
        set_token(id.get<uint32_t>(), {spelling, TokenKind::Text, true});
        id_of_.emplace(spelling, id.get<uint32_t>());
      }
    }
  }

  void add_added(const std::string& content, int64_t id, TokenKind kind) {
    if (kind == TokenKind::AddedToForm && model_.normalizer && bert_form(content, *model_.normalizer).empty()) {
      return faults_.add("added_tokens",
                         cat("must have characters that the normalizer keeps, not so ", shown(content)));
    }
    const auto known = id_of_.find(content);
    const bool repeats = known != id_of_.end() && known->second == id;
    if (!repeats && !ids_.take(id, content)) return;
    set_token(static_cast<uint32_t>(id), {content, kind, repeats && kind != TokenKind::Special});
  }

  void set_token(uint32_t id, WordPieceToken token) {
    if (id >= model_.tokens.size()) model_.tokens.resize(id + 1);
    model_.tokens[id] = std::move(token);
  }

  void read_decoder(const Json& decoder) {
    model_.decoding.reset();
    if (decoder.is_null()) return;
    if (type_of(decoder) != "WordPiece") {
      return faults_.add("decoder", cat("must be null or WordPiece, is ", shown(decoder)));
    }
    WordPieceDecoding decoding;
    const Json& prefix = member(decoder, "prefix");
    if (prefix.is_string()) {
      decoding.prefix = prefix.get<std::string>();
    } else {
      faults_.add("decoder.prefix", cat("must be a string, is ", shown(prefix)));
    }
    read_flag(decoder, "decoder", "cleanup", decoding.cleanup);
    model_.decoding = decoding;
  }

  Faults& faults_;
  TokenIds ids_;
  WordPieceModel model_;
  std::unordered_map<std::string, uint32_t> id_of_;  // tokens of the vocabulary
};

}  // namespace

bool is_wordpiece(const Json& json) { return type_of(member(json, "model")) == "WordPiece"; }

WordPieceModel wordpiece_of_json(const Json& json, Faults& faults) { return WordPieceReader(faults).read(json); }

namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns the post-processor "[CLS] text [SEP]", or null if one of them is no token.
OrderedJson framing_of(const OrderedJson& vocab) {
  if (!vocab.contains("[CLS]") || !vocab.contains("[SEP]")) return nullptr;
  const auto special = [](const char* name, int type) {
    return OrderedJson{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return OrderedJson{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  OrderedJson tokens;
  for (const char* name : {"[CLS]", "[SEP]"}) {
    tokens[name] = {{"id", name}, {"ids", OrderedJson::array({vocab[name]})}, {"tokens", OrderedJson::array({name})}};
  }
  const auto single = OrderedJson::array({special("[CLS]", 0), text("A", 0), special("[SEP]", 0)});
  auto pair = single;
  pair.push_back(text("B", 1));
  pair.push_back(special("[SEP]", 1));
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

OrderedJson added_of_file(const WordPieceModel& model) {
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const auto& [spelling, kind, in_words] = model.tokens[id];
    check(kind == TokenKind::Special || in_words, "special tokens and tokens of the vocabulary");
    if (kind != TokenKind::Special) continue;
    added.push_back({{"id", id},
                     {"content", spelling},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

}  // namespace

std::string wordpiece_json(const WordPieceModel& model) {
  const BertRules& rules = model.normalizer.value();
  OrderedJson vocab = OrderedJson::object();
  vocab.get_ref<OrderedJson::object_t&>().reserve(model.tokens.size());
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    vocab.get_ref<OrderedJson::object_t&>().Container::emplace_back(model.tokens[id].spelling, id);
  }
  const OrderedJson file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_of_file(model)},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", rules.clean_text},
        {"handle_chinese_chars", rules.handle_chinese_chars},
        {"strip_accents", rules.strip_accents},
        {"lowercase", rules.lowercase}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", framing_of(vocab)},
      {"decoder",
       {{"type", "WordPiece"}, {"prefix", model.decoding.value().prefix}, {"cleanup", model.decoding->cleanup}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", model.tokens[static_cast<size_t>(model.unknown)].spelling},
        {"continuing_subword_prefix", model.prefix},
        {"max_input_chars_per_word", model.max_word_chars},
        {"vocab", vocab}}}};
  return file.dump(1) + "\n";
}

}  // namespace braid::tokenize
