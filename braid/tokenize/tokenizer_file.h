// Byte-level BPE models in files: tokenizer.json, or vocab.json with merges.txt.
#pragma once

#include <string>

#include "braid/tokenize/bpe_tokenizer.h"

namespace braid::tokenize {

// From a tokenizer.json, or a folder with it (preferred) or with vocab.json and merges.txt (GPT-2's pattern). Of a
// tokenizer.json everything that changes tokens is read or refused (docs/tokenizer.md); post-processor, truncation and
// padding are not looked at. End-of-text is `eos_token` of a tokenizer_config.json in the same folder, else the first
// of the usual names that the vocabulary has. Throws ConfigError (key "data.tokenizer") with everything that is
// missing, malformed or not supported.
BpeModel read_bpe(const std::string& path);

// The model as a tokenizer.json that the Hugging Face library loads too. `model` has one stage, one of
// pattern_names().
std::string tokenizer_json(const BpeModel& model);

}  // namespace braid::tokenize
