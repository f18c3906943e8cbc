// Entry: finds the command, runs it, turns the three kinds of error into messages and exit codes.
#include <iostream>

#include "braid/base/errors.h"
#include "braid/cli/commands.h"

namespace braid {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Words& words);
};

constexpr Command kCommands[] = {
#ifdef BRAID_TORCH
    {"train", "train a language model as a configuration file says", train_command},
    {"sample", "generate text from a checkpoint", sample_command},
    {"bench", "time training on this machine: how it scales with ranks", bench_command},
#endif
    {"data", "prepare text for training: learn a vocabulary, make token files", data_command},
    {"simulate", "draw a pipeline schedule on a virtual clock", simulate_command},
    {"report", "write a page about a run: curves, timeline, memory, configuration", report_command},
    {"config", "print every configuration key, its default and its meaning", config_command},
};

int usage(std::ostream& out, int code) {
  out << "usage: braid COMMAND [ARGUMENT ...]\n\n";
  for (const auto& command : kCommands) {
    out << "  " << command.name << std::string(12 - std::string(command.name).size(), ' ') << command.summary << "\n";
  }
  out << "\nbraid COMMAND --help tells what it takes.\n";
  return code;
}

int run(const Words& words) {
  if (words.empty()) return usage(std::cerr, 2);
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return usage(std::cout, 0);
  for (const auto& command : kCommands) {
    if (words[0] == command.name) return command.run({words.begin() + 1, words.end()});
  }
  std::cerr << "braid: no command is called '" << words[0] << "'\n\n";
  return usage(std::cerr, 2);
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  try {
    return braid::run({argv + 1, argv + argc});
  } catch (const braid::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const braid::CommError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const braid::IoError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const braid::RunError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "braid: internal error: " << error.what() << "\n";
    return 70;
  }
}
