// braid config: prints the configuration keys, or a starter configuration.
#include <iostream>

#include "braid/cli/arguments.h"
#include "braid/spec/describe.h"

namespace braid::cli {

int config_command(const Words& words) {
  CLI::App app("Prints every configuration key with its default, its rule and its meaning.", "braid config");
  bool markdown = false, starter = false;
  auto* as_page = app.add_flag("--markdown", markdown, "as docs/configuration.md");
  app.add_flag("--starter", starter, "a run to begin with, in place of the keys: braid config --starter > run.toml")
      ->excludes(as_page);
  if (const auto code = parse_words(app, words)) return *code;
  std::cout << (starter ? spec::starter_toml() : markdown ? spec::config_markdown() : spec::config_text());
  return 0;
}

}  // namespace braid::cli
