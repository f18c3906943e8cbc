// braid config: the configuration keys. It reads no file.
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"
#include "braid/spec/describe.h"

namespace braid {
namespace {

constexpr const char* kUsage =
    "usage: braid config [--markdown]\n\n"
    "Prints every configuration key with its default, its rule and its meaning.\n\n"
    "  --markdown  as docs/configuration.md\n";

}  // namespace

int config_command(const Words& words) {
  if (words.empty()) {
    std::cout << config_text();
    return 0;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    std::cout << kUsage;
    return 0;
  }
  std::vector<Problem> unknown;
  for (const auto& word : words) {
    if (word == "--markdown") continue;
    unknown.push_back({"", word, "is not an option of braid config", nearest(word, {"--markdown", "--help"})});
  }
  if (!unknown.empty()) throw ConfigError(std::move(unknown));
  std::cout << config_markdown();
  return 0;
}

}  // namespace braid
