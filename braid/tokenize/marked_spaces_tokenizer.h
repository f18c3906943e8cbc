// Byte-pair encoding over characters in which spaces are the character U+2581, as in SentencePiece: Llama 2, Mistral,
// TinyLlama. Source: huggingface/tokenizers 0.23, models/bpe, normalizers/prepend and pre_tokenizers/metaspace.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/faults.h"

namespace braid::tokenize {

// Reads a tokenizer.json whose BPE falls back to bytes and marks spaces, the form that SentencePiece models are
// converted to. Returns and adds faults as bpe_of_json() does. Source: the serialisation of huggingface/tokenizers
// 0.23.
BpeModel marked_spaces_of_json(const nlohmann::json& json, Faults& faults);

// Makes the tokenizer of a model with FirstTokens::Characters.
std::unique_ptr<Tokenizer> marked_spaces_tokenizer(BpeModel model);

}  // namespace braid::tokenize
