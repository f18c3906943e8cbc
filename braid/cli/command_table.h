// The list of commands, for dispatch, help, the manual page and shell completion. Each command describes its arguments
// itself (command_page.h).
#pragma once

#include <string>
#include <vector>

#include "braid/cli/commands.h"

namespace braid::cli {

struct Command {
  std::string name;
  std::string summary;                       // a line, without a capital and a full stop
  int (*run)(const Words& words) = nullptr;  // null for a group
  std::vector<Command> commands = {};        // of a group
};

// braid itself, a group.
const Command& braid_commands();

}  // namespace braid::cli
