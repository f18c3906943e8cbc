// The prompts of braid sample: words of the command line, standard input, lines of a file.
#pragma once

#include <string>
#include <vector>

namespace braid::cli {

struct PromptWords {
  std::vector<std::string> given;  // by --prompt; "-" is standard input, to its end
  std::string file;                // by --prompts; empty: none
};

// Those given, then those of the file: each line of it, or of .jsonl (.ndjson) the string "prompt" of the object on
// each line; lines without characters are passed over. One empty prompt where there is none. Throws ConfigError with
// all that is wrong with them, IoError where standard input cannot be
// read. A file has at most 256 MiB.
std::vector<std::string> read_prompts(const PromptWords& words);

}  // namespace braid::cli
