// braid man: the manual page.
#include <iostream>

#include "braid/cli/arguments.h"
#include "braid/cli/manual_page.h"

namespace braid::cli {

int man_command(const Words& words) {
  CLI::App app("Prints the manual page in the language of man: braid man | man -l -", "braid man");
  if (const auto code = parse_words(app, words)) return *code;
  std::cout << manual_page(page_of(braid_commands(), braid_commands().name));
  return 0;
}

}  // namespace braid::cli
