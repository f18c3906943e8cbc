// braid data: the table of what can be done with data before a run.
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"

namespace braid {
namespace {

struct Subcommand {
  const char* name;
  const char* summary;
  int (*run)(const Words& words);
};

constexpr Subcommand kSubcommands[] = {
    {"prepare", "turn text files into token files for training", prepare_command},
    {"inspect", "print what a folder of prepared data holds, every byte verified", inspect_command},
    {"train-bpe", "learn a byte-level BPE vocabulary from text", train_bpe_command},
};

void usage(std::ostream& out) {
  out << "usage: braid data SUBCOMMAND [ARGUMENT ...]\n\n";
  for (const auto& subcommand : kSubcommands) {
    out << "  " << subcommand.name << std::string(12 - std::string(subcommand.name).size(), ' ') << subcommand.summary
        << "\n";
  }
  out << "\nbraid data SUBCOMMAND --help tells what it takes.\n";
}

}  // namespace

int data_command(const Words& words) {
  if (words.empty()) {
    usage(std::cerr);
    return 2;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    usage(std::cout);
    return 0;
  }
  std::vector<std::string> names;
  for (const auto& subcommand : kSubcommands) {
    if (words[0] == subcommand.name) return subcommand.run({words.begin() + 1, words.end()});
    names.emplace_back(subcommand.name);
  }
  throw ConfigError({{"braid data", words[0], cat("must be one of ", joined(names)), nearest(words[0], names)}});
}

}  // namespace braid
