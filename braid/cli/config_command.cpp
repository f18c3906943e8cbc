// braid config: the configuration keys. It reads no file.
#include <iostream>

#include "braid/cli/arguments.h"
#include "braid/spec/describe.h"

namespace braid {

int config_command(const Words& words) {
  CLI::App app("Prints every configuration key with its default, its rule and its meaning.", "braid config");
  bool markdown = false;
  app.add_flag("--markdown", markdown, "as docs/configuration.md");
  if (const auto code = parse_words(app, words)) return *code;
  std::cout << (markdown ? config_markdown() : config_text());
  return 0;
}

}  // namespace braid
