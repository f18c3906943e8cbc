// Scripts that make a shell complete the words of a command line.
#pragma once

#include <string>
#include <vector>

#include "braid/cli/command_page.h"

namespace braid::cli {

struct CompletedKey {
  std::string key;                       // "train.steps", completed to "train.steps=" where a command takes overrides
  std::string meaning;                   // shown by the shells that show meanings
  std::vector<std::string> values = {};  // all there are, or the best known; empty: names of files are offered
};

std::vector<std::string> completed_shells();

// Returns the completion script for `shell`, one of completed_shells(). It completes commands, options and keys where
// each may stand, and file names elsewhere.
std::string shell_completion(const std::string& shell, const CommandPage& braid, const std::vector<CompletedKey>& keys);

}  // namespace braid::cli
