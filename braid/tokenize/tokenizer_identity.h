// The identity of a tokenizer, computed from the content of its files, not their location. The files are not parsed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/data/prepared_corpus.h"

namespace braid::tokenize {

constexpr int64_t kMaxTokenizerBytes = 1'000'000'000;  // largest size of a tokenizer's file, far above any real one

// Returns the files of the tokenizer `name`, a DataSpec::tokenizer. There are none for "bytes"; else a tokenizer.json,
// or a vocab.json with a merges.txt, and a tokenizer_config.json if it exists. The other files may not exist. Throws
// IoError if the system does not report whether one does.
std::vector<std::string> tokenizer_files(const std::string& name);

// Returns the XXH64 digest of the files that decide tokens: all of tokenizer_files() but tokenizer_config.json; for
// "bytes" the digest of a fixed text. The kind is XXH64 even if files around it use another. Equal files have equal
// identities in any folder. Throws IoError.
uint64_t tokenizer_identity(const std::string& name);

// Throws IoError if the tokenizer inside the folder of prepared data, or its files, differ from those that made the
// tokens.
void require_own_tokenizer(const data::PreparedFolder& folder);

// Returns the content of tokenizer_files() by file name. A folder with these files is the same tokenizer: a file of
// another name is called tokenizer.json in it. Throws IoError.
std::map<std::string, std::string> tokenizer_copy(const std::string& name);

// Returns a hash of an identity and of the token that ends documents, which tokenizer_config.json may choose. Hashes
// are equal for tokenizers that turn the same documents into the same tokens. Never returns 0.
uint64_t tokenizer_hash(uint64_t identity, int64_t end_of_text);

}  // namespace braid::tokenize
