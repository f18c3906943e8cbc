// Byte-pair encoding over characters, in which spaces are the character U+2581, as SentencePiece has it: Llama 2,
// Mistral, TinyLlama. Source: huggingface/tokenizers 0.23, models/bpe, normalizers/prepend and
// pre_tokenizers/metaspace.
#pragma once

#include <memory>

#include "braid/tokenize/bpe_tokenizer.h"

namespace braid::tokenize {

// Makes the tokenizer of a model with FirstTokens::Characters.
std::unique_ptr<Tokenizer> marked_spaces_tokenizer(BpeModel model);

}  // namespace braid::tokenize
