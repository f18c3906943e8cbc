// braid completion: prints the script with which a shell completes braid's words.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/command_page.h"
#include "braid/cli/option_rules.h"
#include "braid/model/preset.h"
#include "braid/spec/fields.h"

namespace braid::cli {
namespace {

// A configuration key that the scripts complete.
struct CompletedKey {
  std::string key;                       // "train.steps"; completed to "train.steps=" if the command takes overrides
  std::string meaning;                   // shown by the shells that show meanings
  std::vector<std::string> values = {};  // all values, or the best known; empty: file names are offered
};

constexpr const char* kBash = R"(# Completion of braid for bash, made by `braid completion bash`.
_braid() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=braid commands= options= valued= keys= offered= i key= named=0
  local all_keys=@keys@
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
      @commands@) command+=" ${COMP_WORDS[i]}" ;;
      *) named=1 ;;
    esac
  done
  case $command in
@cases@  esac
  COMPREPLY=()
  if [[ $current == = ]]; then key=$previous current=
  elif [[ $previous == = ]]; then key=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  # Behind an option with a value, and behind the = of a key of any words, the shell offers names of files.
  if [[ " $valued " == *" $previous "* ]]; then return; fi
  if [[ -n $key ]]; then
    case $key in
@values@    esac
  elif [[ $current == -* ]]; then offered=$options
  elif [[ -n $commands ]]; then offered=$commands
  elif ((named)); then offered=$keys
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _braid braid
)";

constexpr const char* kZsh = R"(#compdef braid
# Completion of braid for zsh, made by `braid completion zsh`.
_braid() {
  local command=braid word
  local -a commands options valued keys all_keys
  local -i named=0
  all_keys=(@keys@)
  for word in ${words[2,CURRENT-1]}; do
    case "$command $word" in
      (@commands@) command+=" $word" ;;
      (*) named=1 ;;
    esac
  done
  case $command in
@cases@  esac
  # Behind an option with a value, and behind the = of a key of any words, names of files are offered.
  if (( ${valued[(Ie)${words[CURRENT-1]}]} )); then _files
  elif [[ $PREFIX == -* ]]; then _describe -o option options
  elif [[ $PREFIX == *=* ]]; then
    word=${PREFIX%%=*}
    compset -P '*='
    case $word in
@values@      (*) _files ;;
    esac
  elif (( $#commands )); then _describe command commands
  elif (( named && $#keys )); then _describe key keys -S ''
  else _files
  fi
}
if [[ $funcstack[1] == _braid ]]; then _braid "$@"; else compdef _braid braid; fi
)";

constexpr const char* kFish = R"(# Completion of braid for fish, made by `braid completion fish`.
function __braid_command
  set -l command braid
  for word in (commandline -opc)
    switch "$command $word"
      case @commands@
        set command "$command $word"
    end
  end
  echo $command
end
@cases@)";

// A word that a shell offers, and its meaning.
struct Offer {
  std::string word, meaning;
};
using Offers = std::vector<Offer>;
using Keys = std::vector<CompletedKey>;

// The texts that replace the placeholders of a script.
struct Parts {
  std::string keys, commands, cases, values = "";
};

std::string filled(std::string script, const Parts& parts) {
  for (const auto& [place, text] : {std::pair{"@keys@", parts.keys},
                                    {"@commands@", parts.commands},
                                    {"@cases@", parts.cases},
                                    {"@values@", parts.values}}) {
    const size_t at = script.find(place);
    if (at != script.npos) script.replace(at, std::string(place).size(), text);
  }
  return script;
}

// Returns the text quoted as one word for a shell.
std::string quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? "'\\''" : std::string(1, c);
  return all + "'";
}

// Returns the page and all pages inside it.
std::vector<const CommandPage*> all_pages(const CommandPage& page) {
  std::vector<const CommandPage*> all{&page};
  for (const auto& command : page.commands) {
    for (const CommandPage* inner : all_pages(command)) all.push_back(inner);
  }
  return all;
}

// Returns the quoted names of all commands, joined by `separator`: 'braid train' 'braid data' ...
std::string quoted_names(const CommandPage& braid, const char* separator) {
  std::vector<std::string> names;
  for (const CommandPage* page : all_pages(braid)) {
    if (page != &braid) names.push_back(quoted(page->name));
  }
  return joined(names, separator);
}

Offers commands_of(const CommandPage& page) {
  Offers all;
  for (const auto& command : page.commands) {
    all.push_back({command.name.substr(page.name.size() + 1), command.summary});
  }
  return all;
}

Offers options_of(const CommandPage& page) {
  Offers all;
  for (const auto& option : page.options) {
    for (const auto& name : option.names) all.push_back({name, option.meaning});
  }
  return all;
}

// Returns the names of options that take a value.
std::vector<std::string> valued_options(const CommandPage& page) {
  std::vector<std::string> all;
  for (const auto& option : page.options) {
    if (!option.value.empty()) all.insert(all.end(), option.names.begin(), option.names.end());
  }
  return all;
}

bool takes_keys(const CommandPage& page) {
  return std::any_of(page.arguments.begin(), page.arguments.end(),
                     [](const OptionPage& argument) { return argument.names[0] == kOverride; });
}

std::string words_of(const Offers& offers) {
  std::vector<std::string> words;
  for (const auto& offer : offers) words.push_back(offer.word);
  return quoted(joined(words, " "));
}

// Returns the keys as overrides without a value: "train.steps=".
Offers assignments_of(const Keys& keys) {
  Offers all;
  for (const auto& key : keys) all.push_back({key.key + "=", key.meaning});
  return all;
}

std::string bash_script(const CommandPage& braid, const Keys& keys) {
  std::string cases, values;
  for (const auto& key : keys) {
    if (!key.values.empty()) values += cat("      ", key.key, ") offered=", quoted(joined(key.values, " ")), " ;;\n");
  }
  for (const CommandPage* page : all_pages(braid)) {
    cases += cat("    ", quoted(page->name), ")\n      commands=", words_of(commands_of(*page)),
                 "\n      options=", words_of(options_of(*page)),
                 "\n      valued=", quoted(joined(valued_options(*page), " ")),
                 takes_keys(*page) ? "\n      keys=$all_keys" : "", " ;;\n");
  }
  return filled(kBash, {words_of(assignments_of(keys)), quoted_names(braid, " | "), cases, values});
}

// Returns 'word:meaning' for each word, the format of zsh's _describe.
std::string described(const Offers& offers) {
  std::string all;
  for (const auto& [word, meaning] : offers) all += cat("\n        ", quoted(cat(word, ":", meaning)));
  return all;
}

std::string zsh_script(const CommandPage& braid, const Keys& keys) {
  std::string cases, values;
  for (const auto& key : keys) {
    if (!key.values.empty()) values += cat("      (", key.key, ") compadd -- ", joined(key.values, " "), " ;;\n");
  }
  for (const CommandPage* page : all_pages(braid)) {
    cases += cat("    (", quoted(page->name), ")\n      commands=(", described(commands_of(*page)),
                 ")\n      options=(", described(options_of(*page)), ")\n      valued=(",
                 joined(valued_options(*page), " "), ")", takes_keys(*page) ? "\n      keys=($all_keys)" : "", " ;;\n");
  }
  return filled(kZsh, {described(assignments_of(keys)), quoted_names(braid, "|"), cases, values});
}

std::string fish_line(const CommandPage& page, const std::string& what, const std::string& meaning) {
  return cat("complete -c braid -n \"test (__braid_command) = ", quoted(page.name), "\" ", what, " -d ",
             quoted(meaning), "\n");
}

std::string fish_lines(const CommandPage& page, const Keys& keys) {
  std::string all;
  for (const auto& [word, meaning] : commands_of(page)) all += fish_line(page, "-f -a " + word, meaning);
  const auto valued = valued_options(page);
  for (const auto& [word, meaning] : options_of(page)) {
    const std::string kind = word.starts_with("--") ? "-l " + word.substr(2) : "-s " + word.substr(1);
    const bool takes_value = std::find(valued.begin(), valued.end(), word) != valued.end();
    all += fish_line(page, kind + (takes_value ? " -r" : ""), meaning);
  }
  if (!takes_keys(page)) return all;
  for (const auto& key : keys) {
    all += fish_line(page, cat("-a ", key.key, "="), key.meaning);
    for (const std::string& value : key.values) all += fish_line(page, cat("-a ", key.key, "=", value), key.meaning);
  }
  return all;
}

std::string fish_script(const CommandPage& braid, const Keys& keys) {
  std::string lines;
  for (const CommandPage* page : all_pages(braid)) lines += fish_lines(*page, keys);
  return filled(kFish, {"", quoted_names(braid, " "), lines});
}

std::vector<std::string> completed_shells() { return {"bash", "zsh", "fish"}; }

// Returns the completion script for `shell`, one of completed_shells(). It completes commands, options and keys where
// each may stand, and file names elsewhere.
std::string shell_completion(const std::string& shell, const CommandPage& braid,
                             const std::vector<CompletedKey>& keys) {
  if (shell == "bash") return bash_script(braid, keys);
  if (shell == "zsh") return zsh_script(braid, keys);
  check(shell == "fish", "a shell is one of those that completion knows");
  return fish_script(braid, keys);
}

std::vector<std::string> values_of(const spec::Field& field) {
  if (std::holds_alternative<spec::Member<bool>>(field.slot)) return {"true", "false"};
  if (const auto* words = std::get_if<spec::OneOf>(&field.rule)) return words->words;
  if (const auto* words = std::get_if<spec::WordOrNumbers>(&field.rule)) return words->words;
  std::vector<std::string> names;
  if (field.key == "model.preset") {
    for (const model::Preset& preset : model::presets()) names.push_back(preset.name);
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
