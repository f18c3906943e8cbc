// Reading a command's words with CLI11, with braid's exit codes and messages. Options are described to CLI11 in names
// that all its versions take.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/cli/commands.h"

namespace braid::cli {

// Empty when the command is to go on, else its exit code: --help was asked for and printed, or words.on_options has
// heard what the command takes. Throws ConfigError with everything that is wrong with the words: options that there are
// not, each with the nearest there is, values that break a rule (option_rules.h) or are none, words that are missing or
// too many. A command with allow_extras() judges the words that fit no option itself (app.remaining()).
std::optional<int> parse_words(CLI::App& app, const Words& words);

// The name of overrides of configuration keys in lists of a command's arguments.
inline constexpr const char* kOverride = "KEY=VALUE";

// The configuration of a run, which stands before its overrides.
CLI::Option* add_run_file(CLI::App& app, std::string& path);

// All further words of the command, as overrides of the configuration's keys.
void add_overrides(CLI::App& app, std::vector<std::string>& overrides);

}  // namespace braid::cli
