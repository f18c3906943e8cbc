// braid data inspect: prints the contents of a folder of prepared data and verifies every byte.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/terminal.h"
#include "braid/data/prepared_corpus.h"
#include "braid/tokenize/tokenizer_identity.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfNames = 2'000;  // bytes that are shown

void print_source(const data::PreparedSource& source) {
  int64_t train = 0, validation = 0;
  for (const auto& part : source.parts) {
    train += part.train.num_tokens;
    validation += part.validation.num_tokens;
  }
  std::cout << "source     " << printable(joined(source.inputs), kMostOfNames) << "\n           "
            << (source.weight > 0 ? cat("weight ", exact(source.weight)) : std::string("shared by size")) << ", "
            << counted(source.num_files, "file") << ", " << human_bytes(static_cast<double>(source.text_bytes))
            << "\n           " << counted(source.num_documents, "document") << ", " << counted(train, "token")
            << " to train on, " << validation << " held out\n";
  if (source.bad_lines > 0) std::cout << "           " << counted(source.bad_lines, "bad line") << " skipped\n";
}

// Verifies the tokenizer and every listed file, and prints the results. Returns a line for each fault.
std::vector<std::string> damage(const data::PreparedFolder& folder) {
  const auto pages = std::make_shared<data::ResidentPages>();
  std::vector<std::string> found;
  try {
    tokenize::require_own_tokenizer(folder);
  } catch (const IoError& error) {
    found.push_back(error.what());
    std::cout << "tokenizer  DAMAGED" << std::endl;
  }
  const auto verify = [&](const std::string& name, const data::TokenFileInfo& listed) {
    if (listed.num_tokens == 0) return;
    try {
      data::open_listed(folder, name, listed, pages)->verify();
      std::cout << "file       " << shown_on_line(name) << ": " << counted(listed.num_tokens, "token") << ", "
                << counted(listed.num_documents, "document") << ", " << human_bytes(static_cast<double>(listed.bytes))
                << ", good" << std::endl;
    } catch (const IoError& error) {
      found.push_back(error.what());
      std::cout << "file       " << shown_on_line(name) << ": DAMAGED" << std::endl;
    }
  };
  for (const auto& source : folder.manifest.sources) {
    for (const auto& part : source.parts) {
      verify(part.train_name, part.train);
      verify(part.validation_name, part.validation);
    }
  }
  return found;
}

}  // namespace

int inspect_command(const Words& words) {
  CLI::App app("Prints what a folder of prepared data holds and verifies every byte.", "braid data inspect");
  std::string path;
  app.add_option("DIR", path, "a folder that braid data prepare filled")->required();
  if (const auto code = parse_words(app, words)) return *code;

  if (!data::is_prepared(path)) throw ConfigError({{"DIR", path, "must be a folder of prepared data", ""}});
  const data::PreparedFolder folder = data::prepared_folders({path}).at(0);
  const auto& mark = folder.manifest.tokenizer;
  std::cout << "tokenizer  " << printable(data::tokenizer_name(folder), kMostOfNames) << ", "
            << counted(mark.vocab, "token") << ", end of text " << mark.end_of_text << "\n";
  for (const auto& source : folder.manifest.sources) print_source(source);
  const auto found = damage(folder);
  for (const auto& fault : found) std::cerr << "braid: " << fault << "\n";
  return found.empty() ? 0 : 3;
}

}  // namespace braid::cli
