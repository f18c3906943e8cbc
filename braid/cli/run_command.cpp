// Runs the command that the arguments name, and turns errors into messages and exit codes.
#include "braid/cli/run_command.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/process_start.h"
#include "braid/base/text.h"
#include "braid/cli/command_page.h"
#include "braid/cli/token_variable.h"
#include "braid/cli/version.h"
#include "braid/spec/peer_names.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfMessage = 20'000;  // bytes

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

// Throws ConfigError for an unknown command. It may suggest a command inside a group whose name the user left out.
[[noreturn]] void refuse(const std::string& word, const Command& group, const std::string& name) {
  std::vector<std::string> names, known;
  std::map<std::string, std::string> groups;  // by command, its group's name and a blank
  for (const auto& command : group.commands) names.push_back(command.name);
  known = names;
  known.emplace_back("help");
  for (const OptionPage& option : page_of(group, name).options) known.push_back(option.names.back());
  for (const auto& command : group.commands) {
    for (const auto& inner : command.commands) {
      known.push_back(inner.name);
      groups[inner.name] = command.name + " ";
    }
  }
  const std::string meant = spec::nearest_word(word, known);
  throw ConfigError({{word, "", cat("is no command of ", name, ", which has ", joined(names)), groups[meant] + meant}});
}

// Returns true for a command that joins a job. It reads BRAID_TOKEN and removes it itself.
bool joins_jobs(const Command& command) {
#ifdef BRAID_TORCH
  return command.run == train_command || command.run == doctor_command;
#else
  return false;
#endif
}

int run(const Command& command, const std::string& name, const std::vector<std::string>& words) {
  if (command.run) {
    if (!joins_jobs(command)) forget_token_variable();
    return command.run({words});
  }
  if (words.empty()) {
    std::cerr << help_text(page_of(command, name));
    return 2;
  }
  if (asks_for_help(words[0])) {
    std::cout << help_text(page_of(command, name));
    return 0;
  }
  for (const auto& inner : command.commands) {
    if (inner.name == words[0]) return run(inner, name + " " + inner.name, {words.begin() + 1, words.end()});
  }
  refuse(words[0], command, name);
}

// Runs the command that the words name and returns its exit code. Throws what the command throws, and ConfigError for
// an unknown command.
int dispatch(std::vector<std::string> words) {
  const Command& braid = braid_commands();
  if (!words.empty() && words[0] == "--version") {
    if (words.size() > 1) throw ConfigError({{"", words[1], "is one word too many for braid --version", ""}});
    std::cout << version_text();
    return 0;
  }
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    if (words == std::vector<std::string>{"help"}) words.clear();  // "braid help help" means "braid help"
    words.emplace_back("--help");
  }
  return run(braid, braid.name, words);
}

// Runs the command and returns its exit code. Prints errors as messages.
int exit_code_of(const std::vector<std::string>& words) {
  try {
    prepare_process();
    const int code = dispatch(words);
    if (code < 2 && !std::cout.flush()) throw IoError("standard output", -1, "cannot be written");
    return code;
  } catch (const ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const CommError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const IoError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const RunError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const std::bad_alloc&) {
    std::cerr << "braid: there is not enough memory\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "braid: internal error: " << printable(error.what(), kMostOfMessage, LineBreaks::Kept) << "\n";
    return 70;
  }
}

// Ends the process without static destructors. Those of LibTorch unregister thousands of operators and take 0.15 s.
// Builds with sanitizers run them, because sanitizers look for leaks afterwards.
[[noreturn]] void end_process(int code) {
#ifdef BRAID_SANITIZED
  std::exit(code);
#else
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
#endif
}

}  // namespace

void run_command(int argc, char** argv) { end_process(exit_code_of({argv + 1, argv + argc})); }

}  // namespace braid::cli
