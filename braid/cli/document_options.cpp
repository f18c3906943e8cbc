// Their wording.
#include "braid/cli/document_options.h"

namespace braid::cli {

void add_document_options(CLI::App& app, std::vector<std::string>& include, std::string& text_field,
                          tokenize::BadLines& bad_lines) {
  app.add_option("--include", include, "a file name pattern inside folders, \"*.txt\"; repeatable")
      ->allow_extra_args(false);
  app.add_option("--text-field", text_field, "of a line of .jsonl")->capture_default_str();
  app.add_flag_callback(
      "--skip-bad-lines", [&bad_lines] { bad_lines = tokenize::BadLines::Skipped; },
      "pass over lines of .jsonl without the text field, and count them");
}

}  // namespace braid::cli
