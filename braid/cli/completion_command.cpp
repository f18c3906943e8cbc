// braid completion: what a shell reads to complete braid's words.
#include <iostream>

#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/shell_completion.h"
#include "braid/spec/fields.h"

namespace braid {

int completion_command(const Words& words) {
  CLI::App app("Prints what makes a shell complete braid's commands, options and configuration keys.",
               "braid completion");
  std::string shell;
  app.add_option("SHELL", shell, "bash, zsh or fish")->required()->check(one_of(completed_shells()));
  if (const auto code = parse_words(app, words)) return *code;
  std::vector<CompletedKey> keys;
  for (const Field& field : fields()) keys.push_back({field.key, field.meaning});
  std::cout << shell_completion(shell, page_of(braid_commands(), braid_commands().name), keys);
  return 0;
}

}  // namespace braid
