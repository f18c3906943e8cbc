// Reads a command's words with CLI11, with braid's exit codes and messages. Option names given to CLI11 are valid in
// all its versions.
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

// Parses the words. Returns nullopt if the command should run. Otherwise returns its exit code: --help was printed, or
// words.on_options was called with the command's options.
//
// Throws ConfigError with everything that is wrong with the words: unknown options, each with the nearest known one;
// values that break a rule (option_rules.h) or have the wrong type; missing or surplus words. A command with
// allow_extras() itself checks the words that fit no option (app.remaining()).
std::optional<int> parse_words(CLI::App& app, const Words& words);

// The name for overrides of configuration keys in lists of a command's arguments.
inline constexpr const char* kOverride = "KEY=VALUE";

// Adds the argument for a run's configuration file, which comes before its overrides.
CLI::Option* add_run_file(CLI::App& app, std::string& path);

// Adds all further words of the command as overrides of configuration keys.
void add_overrides(CLI::App& app, std::vector<std::string>& overrides);

}  // namespace braid::cli
