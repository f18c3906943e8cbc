// Reading a command's words with CLI11, with braid's exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>

#include "braid/base/errors.h"
#include "braid/cli/commands.h"

namespace braid {

// Empty when the command is to go on; 0 when --help was asked for and printed. Throws ConfigError for words that do not
// fit.
inline std::optional<int> parse_words(CLI::App& app, const Words& words) {
  try {
    Words reversed(words.rbegin(), words.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    throw ConfigError({{"", "", std::string(error.what()) + " (" + app.get_name() + " --help tells more)", ""}});
  }
  return std::nullopt;
}

}  // namespace braid
