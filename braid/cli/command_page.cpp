// Converts CLI11's options to pages, and pages to help texts.
#include "braid/cli/command_page.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "braid/base/text.h"

namespace braid::cli {

const Command& braid_commands() {
  static const Command kBraid{
      "braid",
      "trains language models on all the devices its user has",
      nullptr,
      {
#ifdef BRAID_TORCH
          {"train", "train a language model as a configuration file says", train_command},
          {"sample", "generate text from a checkpoint", sample_command},
          {"evaluate", "measure a checkpoint's loss on text", evaluate_command},
          {"verify", "prove that a run's layout computes what one rank computes", verify_command},
          {"ckpt",
           "look into checkpoints, compare and rewrite them, take weights from and to elsewhere",
           nullptr,
           {
               {"inspect", "print what a checkpoint holds: tensors, files, tokenizer, data", ckpt_inspect_command},
               {"verify", "compare every byte of a checkpoint with its manifest", ckpt_verify_command},
               {"diff", "print what two checkpoints differ in", ckpt_diff_command},
               {"reshard", "write a checkpoint anew in other files, such as one of whole tensors",
                ckpt_reshard_command},
               {"from-hf", "make a checkpoint of a Hugging Face directory's weights", ckpt_from_hf_command},
               {"to-hf", "write a checkpoint's weights as a Hugging Face directory", ckpt_to_hf_command},
           }},
          {"bench",
           "time training on this machine: how it scales with ranks",
           nullptr,
           {{"scaling", "steps at several counts of data ranks: table and plot", scaling_command}}},
          {"doctor", "measure what this host or a job has: limits, links between ranks, disk", doctor_command},
#endif
          {"data",
           "prepare text for training: learn a vocabulary, make token files",
           nullptr,
           {{"prepare", "turn text files into token files for training", prepare_command},
            {"inspect", "print what a folder of prepared data holds, every byte verified", inspect_command},
            {"train-bpe", "learn a byte-level BPE vocabulary from text", train_bpe_command},
            {"train-wordpiece", "learn a WordPiece vocabulary, as of BERT, from text", train_wordpiece_command}}},
          {"token", "make the secret of a job on several hosts", token_command},
          {"model", "list the ops of a run's model with shapes, parameters and sums between ranks", model_command},
          {"plan", "predict a run on a cluster, and find its fastest layout", plan_command},
          {"simulate", "draw a pipeline schedule on a virtual clock", simulate_command},
          {"report", "write a page about a run: curves, timeline, memory, configuration", report_command},
          {"config", "print every configuration key, its default and its meaning", config_command},
          {"completion", "print what makes a shell complete these words", completion_command},
          {"man", "print the manual page", man_command},
      }};
  return kBraid;
}

namespace {

constexpr size_t kColumns = 100, kMeaningColumn = 26, kSummaryColumn = 14;

// Returns the word for an option's value in help texts, from CLI11's name of its type.
std::string value_word(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "NUMBER" : type;
}

OptionPage option_page(const CLI::Option& option) {
  OptionPage page;
  for (const auto& name : option.get_snames()) page.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) page.names.push_back("--" + name);
  if (option.get_positional()) {
    page.names = {option.get_option_text().empty() ? option.get_name() : option.get_option_text()};
  } else if (option.get_items_expected_max() > 0) {
    page.value = value_word(option);
  }
  page.meaning = option.get_description();
  page.otherwise = option.get_default_str();
  page.required = option.get_required();
  page.repeats = option.get_items_expected_max() > 1;
  return page;
}

// Returns the text broken into lines that begin at `column`. The first line gets no indent: the caller has written it.
std::string wrapped(const std::string& text, size_t column) {
  std::string lines;
  size_t at = column;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (at > column && at + 1 + word.size() > kColumns) {
      lines += "\n" + std::string(column, ' ');
      at = column;
    }
    const std::string next = at > column ? " " + word : word;
    lines += next;
    at += next.size();
  }
  return lines;
}

std::string row(const std::string& left, const std::string& right, size_t column) {
  std::string line = "  " + left;
  const bool fits = line.size() + 2 <= column;
  line += fits ? std::string(column - line.size(), ' ') : "\n" + std::string(column, ' ');
  return line + wrapped(right, column) + "\n";
}

bool is_help(const OptionPage& option) { return option.names.back() == "--help"; }

OptionPage help_option() { return {.names = {"-h", "--help"}, .meaning = "print this"}; }

std::string group_text(const CommandPage& page) {
  std::string all = cat("usage: ", usage_line(page), "\n\n");
  for (const auto& command : page.commands) {
    const std::string word = command.name.substr(page.name.size() + 1);
    all += row(word, command.summary, kSummaryColumn);
  }
  for (const auto& option : page.options) {
    if (!is_help(option)) all += row(heading(option), option.meaning, kSummaryColumn);
  }
  return all + "\n" + page.name + " COMMAND --help describes its arguments.\n";
}

}  // namespace

CommandPage page_of(const CLI::App& app) {
  CommandPage page;
  page.name = app.get_name();
  page.meaning = app.get_description();
  page.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    (option->get_positional() ? page.arguments : page.options).push_back(option_page(*option));
  }
  page.options.push_back(help_option());
  return page;
}

CommandPage page_of(const Command& command, const std::string& name) {
  CommandPage page;
  page.name = name;
  page.options = {help_option()};
  if (&command == &braid_commands()) {
    page.options.push_back({.names = {"--version"}, .meaning = "print version, commit and what was built in"});
  }
  if (command.run) command.run({{}, [&](const CLI::App& app) { page = page_of(app); }});
  page.summary = command.summary;
  for (const auto& inner : command.commands) page.commands.push_back(page_of(inner, name + " " + inner.name));
  return page;
}

std::string usage_line(const CommandPage& page) {
  std::string line = page.name;
  if (!page.commands.empty()) return line + " COMMAND [ARGUMENT ...]";
  for (const auto& option : page.options) {
    if (option.required) line += " " + heading(option);
  }
  const auto optional = std::count_if(page.options.begin(), page.options.end(), [](auto& o) { return !o.required; });
  if (optional > 1) line += " [OPTION ...]";  // every command has --help
  for (const auto& argument : page.arguments) {
    const std::string words = argument.names[0] + (argument.repeats ? " ..." : "");
    line += argument.required ? " " + words : " [" + words + "]";
  }
  return line;
}

std::string heading(const OptionPage& option) {
  return joined(option.names) + (option.value.empty() ? "" : " " + option.value);
}

std::string explanation(const OptionPage& option) {
  return option.otherwise.empty() ? option.meaning : cat(option.meaning, " (", option.otherwise, ")");
}

std::string help_text(const CommandPage& page) {
  if (!page.commands.empty()) return group_text(page);
  std::string all = cat("usage: ", usage_line(page), "\n\n", wrapped(page.meaning, 0), "\n\n");
  for (const auto& argument : page.arguments) all += row(heading(argument), explanation(argument), kMeaningColumn);
  for (const auto& option : page.options) all += row(heading(option), explanation(option), kMeaningColumn);
  return page.footer.empty() ? all : all + "\n" + page.footer + (page.footer.ends_with("\n") ? "" : "\n");
}

}  // namespace braid::cli
