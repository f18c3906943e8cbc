// Whole characters only: UTF-8 to terminals and in JSON.
#include "braid/cli/sample_printer.h"

#include <iostream>
#include <utility>

#include "braid/base/text.h"
#include "braid/cli/terminal.h"
#include "braid/report/metrics_line.h"
#include "braid/spec/word.h"

namespace braid::cli {

SamplePrinter::SamplePrinter(const std::vector<std::string>& prompts, int num_samples, SampleForm form)
    : prompts_(prompts), num_samples_(num_samples), form_(form) {
  if (streams()) prompt_ = shown_.add(prompts_[0]);  // shown when there is something behind it
}

train::GenerationListener SamplePrinter::listener() {
  if (streams()) return {[this](const std::string& piece) { show_piece(piece); }, nullptr};
  return {nullptr, [this](const train::GeneratedText& text) {
            form_ == SampleForm::JsonLines ? show_line(text) : show_text(text);
          }};
}

void SamplePrinter::show_piece(const std::string& piece) {
  std::cout << shown_on_stdout(std::exchange(prompt_, "") + shown_.add(piece)) << std::flush;
}

// The continuation may have been shown by another process, so all is put together anew.
void SamplePrinter::show_rest(const train::Generation& made) const {
  if (!streams()) return;
  WholeCharacters text;
  const std::string begin = text.add(prompts_[0]), &continuation = made.texts.at(0).text;
  text.add(continuation);
  std::cout << shown_on_stdout((continuation.empty() ? begin : "") + text.end()) << std::endl;
}

void SamplePrinter::show_text(const train::GeneratedText& text) const {
  std::cout << "=== prompt " << text.prompt + 1 << " of " << prompts_.size();
  if (num_samples_ > 1) std::cout << ", sample " << text.sample + 1 << " of " << num_samples_;
  std::cout << " (" << word(text.end) << ")\n"
            << shown_on_stdout(whole_characters(prompts_[static_cast<size_t>(text.prompt)] + text.text)) << "\n"
            << std::endl;
}

void SamplePrinter::show_line(const train::GeneratedText& text) const {
  report::MetricsLine line;
  line.add("prompt", whole_characters(prompts_[static_cast<size_t>(text.prompt)]));
  line.add("text", whole_characters(text.text)).add("tokens", text.tokens).add("reason", word(text.end));
  line.add("logprob", text.log_probability).add("prompt_index", text.prompt).add("sample", text.sample);
  std::cout << line.text() << std::endl;
}

}  // namespace braid::cli
