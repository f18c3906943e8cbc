// braid completion: what a shell reads to complete braid's words.
#include <iostream>

#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/shell_completion.h"
#include "braid/spec/fields.h"
#include "braid/spec/preset.h"

namespace braid::cli {
namespace {

std::vector<std::string> values_of(const spec::Field& field) {
  if (std::holds_alternative<spec::Member<bool>>(field.slot)) return {"true", "false"};
  if (const auto* words = std::get_if<spec::OneOf>(&field.rule)) return words->words;
  if (const auto* words = std::get_if<spec::WordOrNumbers>(&field.rule)) return words->words;
  std::vector<std::string> names;
  if (field.key == "model.preset") {
    for (const spec::Preset& preset : spec::presets()) names.push_back(preset.name);
  }
  return names;
}

}  // namespace

int completion_command(const Words& words) {
  CLI::App app("Prints what makes a shell complete braid's commands, options and configuration keys.",
               "braid completion");
  std::string shell;
  app.add_option("SHELL", shell, "bash, zsh or fish")->required()->check(one_of(completed_shells()));
  if (const auto code = parse_words(app, words)) return *code;
  std::vector<CompletedKey> keys;
  for (const spec::Field& field : spec::fields()) keys.push_back({field.key, field.meaning, values_of(field)});
  std::cout << shell_completion(shell, page_of(braid_commands(), braid_commands().name), keys);
  return 0;
}

}  // namespace braid::cli
