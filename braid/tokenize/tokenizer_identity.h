// The identity of a tokenizer, from its files' content and not from their place.
// It knows their files, not what these say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/data/prepared_corpus.h"

namespace braid::tokenize {

constexpr int64_t kMaxTokenizerBytes = 1'000'000'000;  // of any of its files: none comes near it

// The files that `name`, a DataSpec::tokenizer, is made of: none for "bytes"; a tokenizer.json, or a vocab.json with a
// merges.txt, and where it exists a tokenizer_config.json. They need not exist. Throws IoError where the system does
// not say whether one does.
std::vector<std::string> tokenizer_files(const std::string& name);

// XXH64, whatever files around it have, over the files that decide tokens (all of tokenizer_files() but
// tokenizer_config.json); of a fixed text for "bytes". Equal for equal files wherever they lie. Throws IoError.
uint64_t tokenizer_identity(const std::string& name);

// Throws IoError where the tokenizer that lies in prepared data, or its files, are not those that made the tokens.
void require_own_tokenizer(const data::PreparedFolder& folder);

// The bytes of tokenizer_files() by the names under which a folder with them is the same tokenizer: a file of another
// name is tokenizer.json there. Throws IoError.
std::map<std::string, std::string> tokenizer_copy(const std::string& name);

// Hashes an identity and the token that ends documents, which tokenizer_config.json may choose. Equal for tokenizers
// that turn the same documents into the same tokens. Never 0.
uint64_t tokenizer_hash(uint64_t identity, int64_t end_of_text);

}  // namespace braid::tokenize
