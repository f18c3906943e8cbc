// Rules for values of options, for CLI::Option::check. parse_words collects the values that break them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/document_reader.h"

namespace braid::cli {

// Collects problems of several places into one error.

// Runs `read`; the problems of its ConfigError join `found`.
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

// Options of commands that read documents: which files of folders they are in, and how lines of .jsonl are read.

// --include, --text-field and --skip-bad-lines.
void add_document_options(CLI::App& app, std::vector<std::string>& include, std::string& text_field,
                          tokenize::BadLines& bad_lines);

CLI::Validator whole_number(int64_t least, int64_t most);

// A whole number of at least 0 that has 64 bits.
CLI::Validator natural_number();

// A finite number that is at least 0.
CLI::Validator not_negative();

// A number above 0 and at most 1.
CLI::Validator share();

// Any word with a character.
CLI::Validator not_empty();

// A word that is the name of a file and no override, "train.steps=5".
CLI::Validator no_override();

// A file or folder to write: any word but "-", which other programs take for standard output.
CLI::Validator output_name();

CLI::Validator one_of(std::vector<std::string> words);

}  // namespace braid::cli
