// The search for added tokens.
#include "braid/tokenize/added_tokens.h"

#include <algorithm>

namespace braid::tokenize {

AddedTokens::AddedTokens(std::vector<AddedToken> added) : longest_first_(std::move(added)) {
  std::stable_sort(longest_first_.begin(), longest_first_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
  for (const auto& token : longest_first_) begins_[static_cast<unsigned char>(token.content[0])] = true;
}

AddedTokens::Found AddedTokens::find(std::string_view text, size_t at) const {
  if (longest_first_.empty()) return {text.size(), text.size(), 0};
  for (; at < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    for (const auto& token : longest_first_) {
      if (text.substr(at).starts_with(token.content)) return {at, at + token.content.size(), token.token};
    }
  }
  return {text.size(), text.size(), 0};
}

}  // namespace braid::tokenize
