// Rules for the values of options, for CLI::Option::check. parse_words() collects the values that break them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/document_reader.h"

namespace braid::cli {

// Runs `read`. If it throws ConfigError, adds its problems to `found`.
template <class Read>
void collect_problems(std::vector<Problem>& found, const Read& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    found.insert(found.end(), error.problems().begin(), error.problems().end());
  }
}

inline void throw_problems(std::vector<Problem> found) {
  if (!found.empty()) throw ConfigError(std::move(found));
}

// Adds the options of commands that read documents: --include (which files of folders are read), --text-field and
// --skip-bad-lines (how lines of .jsonl are read).
void add_document_options(CLI::App& app, std::vector<std::string>& include, std::string& text_field,
                          tokenize::BadLines& bad_lines);

CLI::Validator whole_number(int64_t least, int64_t most);

// A whole number of at least 0 that fits into 64 bits.
CLI::Validator natural_number();

// A finite number that is at least 0.
CLI::Validator not_negative();

// A number above 0 and at most 1.
CLI::Validator share();

// Any word with at least one character.
CLI::Validator not_empty();

// A file name, as opposed to an override such as "train.steps=5".
CLI::Validator no_override();

// A file or folder to write: any word but "-", which other programs take as standard output.
CLI::Validator output_name();

CLI::Validator one_of(std::vector<std::string> words);

}  // namespace braid::cli
