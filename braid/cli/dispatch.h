// From the words of a command line to the command that they name.
#pragma once

#include <string>
#include <vector>

namespace braid::cli {

// Runs it and returns its exit code. Knows what is no command: `help [COMMAND ...]`, --help and --version. Throws what
// the command throws, and ConfigError for a command that there is not.
int dispatch(std::vector<std::string> words);

}  // namespace braid::cli
