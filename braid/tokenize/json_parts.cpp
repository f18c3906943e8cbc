// The lists of a tokenizer.json: merges and added tokens.
#include "braid/tokenize/json_parts.h"

#include "braid/base/text.h"

namespace braid::tokenize {

void add_merges_of(const nlohmann::json& merges, BpeVocabulary& vocabulary, Faults& faults) {
  if (!merges.is_array()) return faults.add("model.merges", "must be a list");
  size_t malformed = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    const nlohmann::json& merge = merges[i];
    const std::string place = cat("model.merges[", i, "] ");
    if (merge.is_string()) {
      vocabulary.add_merge(merge.get<std::string>(), place);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      vocabulary.add_merge_of(merge[0].get<std::string>(), merge[1].get<std::string>(), place);
    } else {
      ++malformed;
    }
  }
  if (malformed > 0) faults.add("model.merges", cat(malformed, " are neither \"left right\" nor [left, right]"));
}

void read_added_tokens(const nlohmann::json& added, const std::vector<const char*>& refused, Faults& faults,
                       const std::function<void(const std::string&, int64_t, TokenKind)>& add) {
  if (added.is_null()) return;
  if (!added.is_array()) return faults.add("added_tokens", "must be a list");
  for (const nlohmann::json& token : added) {
    const nlohmann::json &content = member(token, "content"), &id = member(token, "id");
    if (!content.is_string() || content == "" || !id.is_number_integer()) {
      faults.add("added_tokens", cat("must have content and id, one is ", shown(token)));
      continue;
    }
    const bool special = is_true(member(token, "special"));
    for (const char* key : refused) {
      if (!special && is_true(member(token, key))) {
        faults.add("added_tokens", cat(key, " is not supported, has it: ", shown(content)));
      }
    }
    const TokenKind cut = is_true(member(token, "normalized")) ? TokenKind::AddedToForm : TokenKind::Added;
    add(content.get<std::string>(), id.get<int64_t>(), special ? TokenKind::Special : cut);
  }
}

}  // namespace braid::tokenize
