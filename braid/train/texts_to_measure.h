// The texts whose loss is measured (text_loss.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "braid/data/token_source.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/loaded_model.h"
#include "braid/train/text_loss.h"

namespace braid::train {

// A text, which is opened when its turn comes, so that only one text is in memory at a time.
struct TextToMeasure {
  std::string path;
  double size = 0;  // relative to the sizes of the other texts
  std::function<std::vector<data::Tokens>()> open;
};

// Returns the texts at options.paths, in the order of the paths. `tokenizer` and `options` outlive them. Throws
// ConfigError for a path without texts, and for data that another tokenizer has prepared (key "data.paths").
std::vector<TextToMeasure> texts_to_measure(const ModelToLoad& load, const TextLossOptions& options,
                                            const tokenize::Tokenizer& tokenizer);

}  // namespace braid::train
