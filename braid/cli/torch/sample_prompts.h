// The prompts of braid sample, from the command line, standard input and a file.
#pragma once

#include <string>
#include <vector>

namespace braid::cli {

struct PromptWords {
  std::vector<std::string> given;  // values of --prompt; "-" is standard input, to its end
  std::string file;                // value of --prompts; empty: none
};

// Returns the prompts from --prompt, then those of the file; one empty prompt if there are none. Each line of the file
// is a prompt; in a .jsonl (.ndjson) the string "prompt" of the object on each line is. Blank lines are passed over. A
// file has at most 256 MiB. Throws ConfigError with everything that is wrong with the prompts, and IoError if standard
// input cannot be read.
std::vector<std::string> read_prompts(const PromptWords& words);

}  // namespace braid::cli
