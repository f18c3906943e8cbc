// The arguments of commands, for help, the manual page and shell completion. They are read from the options that a
// command gives to CLI11, and look the same with every version of that library.
#pragma once

#include <string>
#include <vector>

#include "braid/cli/commands.h"

namespace braid::cli {

// A command or a group of commands, for dispatch, help, the manual page and shell completion. Each command describes
// its own arguments to CLI11.
struct Command {
  std::string name;
  std::string summary;                       // one line, without a capital and a full stop
  int (*run)(const Words& words) = nullptr;  // null for a group
  std::vector<Command> commands = {};        // commands of a group
};

// Returns braid itself, a group.
const Command& braid_commands();

struct OptionPage {
  std::vector<std::string> names;  // "-h", "--help"; for an argument one name, "FILE"
  std::string value;               // "TEXT", "N", "NUMBER"; empty for a flag
  std::string meaning;
  std::string otherwise;  // the value if the option is not given; empty if the meaning says it
  bool required = false;
  bool repeats = false;
};

struct CommandPage {
  std::string name;     // "braid data prepare"
  std::string summary;  // summary in the table of commands
  std::string meaning;  // sentences; empty for a group
  std::string footer;   // lines that are shown as they are
  std::vector<OptionPage> arguments, options;
  std::vector<CommandPage> commands;  // pages of a group's commands
};

// Returns the pages of `command` and of all its commands. `name` includes the names of the groups.
CommandPage page_of(const Command& command, const std::string& name);

CommandPage page_of(const CLI::App& app);

// Returns "braid report [OPTION ...] RUN".
std::string usage_line(const CommandPage& page);

// Returns "--out TEXT", "-h, --help", "FILE".
std::string heading(const OptionPage& option);

// Returns the meaning and the default.
std::string explanation(const OptionPage& option);

// Returns the text of --help.
std::string help_text(const CommandPage& page);

}  // namespace braid::cli
