// Which tokenizer made some tokens: told by its files' content, not by their place.
// It does not load tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

// The files that `name`, a DataSpec::tokenizer, is made of: none for "bytes"; a tokenizer.json, or a vocab.json with a
// merges.txt, and where it exists a tokenizer_config.json. They need not exist.
std::vector<std::string> tokenizer_files(const std::string& name);

// XXH64 over the files that decide tokens (all of tokenizer_files() but tokenizer_config.json); of a fixed text for
// "bytes". Equal for equal files wherever they lie. Throws IoError.
uint64_t tokenizer_identity(const std::string& name);

}  // namespace braid
