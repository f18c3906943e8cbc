// Options of commands that read documents: which files of folders they are in, and how lines of .jsonl are read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "braid/tokenize/document_reader.h"

namespace braid::cli {

// --include, --text-field and --skip-bad-lines.
void add_document_options(CLI::App& app, std::vector<std::string>& include, std::string& text_field,
                          tokenize::BadLines& bad_lines);

}  // namespace braid::cli
