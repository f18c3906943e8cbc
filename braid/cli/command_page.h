// The arguments of a command, for help, the manual page and shell completion. They are read from the options that the
// command gives CLI11, and look the same with every version of that library.
#pragma once

#include <string>
#include <vector>

#include "braid/cli/commands.h"

namespace braid::cli {

// The list of commands, for dispatch, help, the manual page and shell completion. Each command describes its arguments
// itself (command_page.h).
struct Command {
  std::string name;
  std::string summary;                       // a line, without a capital and a full stop
  int (*run)(const Words& words) = nullptr;  // null for a group
  std::vector<Command> commands = {};        // of a group
};

// braid itself, a group.
const Command& braid_commands();

struct OptionPage {
  std::vector<std::string> names;  // "-h", "--help"; an argument has one, "FILE"
  std::string value;               // "TEXT", "N", "NUMBER"; empty for a flag
  std::string meaning;
  std::string otherwise;  // the value when it is not given; empty when the meaning says enough
  bool required = false;
  bool repeats = false;
};

struct CommandPage {
  std::string name;     // "braid data prepare"
  std::string summary;  // of the table of commands
  std::string meaning;  // sentences; a group has none
  std::string footer;   // lines, to be shown as they are
  std::vector<OptionPage> arguments, options;
  std::vector<CommandPage> commands;  // of a group
};

// The pages of `command` and of all that it holds; `name` has the groups in front.
CommandPage page_of(const Command& command, const std::string& name);

CommandPage page_of(const CLI::App& app);

// "braid report [OPTION ...] RUN".
std::string usage_line(const CommandPage& page);

// "--out TEXT", "-h, --help", "FILE".
std::string heading(const OptionPage& option);

// The meaning, and what is so when the option is not given.
std::string explanation(const OptionPage& option);

// Returns the text of --help.
std::string help_text(const CommandPage& page);

}  // namespace braid::cli
