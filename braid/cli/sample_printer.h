// Prints the texts of braid sample: one as it is generated, several as they end, or as JSON lines. The callbacks of
// listener() may run in another process; show_rest() then does not know what they have printed.
#pragma once

#include <string>
#include <vector>

#include "braid/base/utf8.h"
#include "braid/train/generate.h"

namespace braid::cli {

enum class SampleForm { Text, JsonLines };

class SamplePrinter {
 public:
  // `prompts` outlives this.
  SamplePrinter(const std::vector<std::string>& prompts, int num_samples, SampleForm form);

  train::GenerationListener listener();
  // Prints the rest of a single text; nothing else.
  void show_rest(const train::Generation& made) const;

 private:
  bool streams() const { return form_ == SampleForm::Text && prompts_.size() == 1 && num_samples_ == 1; }
  void show_piece(const std::string& piece);
  void show_text(const train::GeneratedText& text) const;
  void show_line(const train::GeneratedText& text) const;

  const std::vector<std::string>& prompts_;
  int num_samples_;
  SampleForm form_;
  WholeCharacters shown_;
  std::string prompt_;  // not shown yet
};

}  // namespace braid::cli
