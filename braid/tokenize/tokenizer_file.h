// Tokenizers in files: BPE and WordPiece in a tokenizer.json, or BPE in vocab.json with merges.txt.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/faults.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

// Reads the parts of a tokenizer.json that form tokens. Returns the model without its end-of-text token. Adds a fault
// for everything that changes tokens and is not supported. The model is unusable if there are faults. Source: the
// serialisation of huggingface/tokenizers 0.23.
BpeModel bpe_of_json(const nlohmann::json& json, Faults& faults);

// Reads a tokenizer.json, or a folder with it (preferred) or with vocab.json and merges.txt (GPT-2's pattern).
// Everything in a tokenizer.json that changes tokens is read or refused (docs/tokenizer.md); post-processor, truncation
// and padding are ignored. End-of-text is `eos_token` of a tokenizer_config.json in the same folder, else the first of
// the usual names that the vocabulary has. Throws ConfigError (key "data.tokenizer") with everything that is missing,
// malformed or unsupported, also for a WordPiece model.
BpeModel read_bpe(const std::string& path);

// Reads files as read_bpe() does, and a tokenizer.json with a WordPiece model. The end-of-text of such a model is
// `eos_token`, else `sep_token`, of the tokenizer_config.json, else the first of the usual names and [SEP] that the
// vocabulary has.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);

// Returns the model as a tokenizer.json, which the Hugging Face library can also load. REQUIRES: `model` has one stage,
// one of pattern_names().
std::string tokenizer_json(const BpeModel& model);

}  // namespace braid::tokenize
