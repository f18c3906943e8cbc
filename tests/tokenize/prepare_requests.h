// Texts to be prepared in a folder of the test's own, and what is said of requests.
#pragma once

#include <map>

#include "braid/base/errors.h"
#include "braid/data/prepared_corpus.h"
#include "braid/tokenize/document_reader.h"
#include "braid/tokenize/prepare.h"
#include "braid/tokenize/text_corpus.h"
#include "tests/support/sample_stream.h"
#include "tests/support/scratch_folder.h"
#include "tests/tokenize/dying_file_system.h"

namespace braid {

class PrepareTest : public ScratchFolder {
 protected:
  PrepareTest() {
    std::filesystem::create_directories(path("text/deep"));
    for (int i = 0; i < 12; ++i) write(path(cat("text/", i, ".txt")), story(i));
    write(path("text/deep/empty.txt"), "");
    std::string lines;
    for (int i = 0; i < 60; ++i) lines += cat("{\"id\": ", i, ", \"text\": \"line ", i, "\\n", story(i), "\"}\n");
    write(path("lines.jsonl"), lines + "\n{\"text\": \"\"}\n{\"text\": \"no newline at the end\"}");
  }

  static std::string story(int i) {
    std::string text;
    for (int word = 0; word < 5 + i % 7; ++word) text += cat("word", i * word, ' ');
    return text;
  }
  tokenize::PrepareRequest request(std::vector<std::string> inputs) const {
    tokenize::PrepareRequest request;
    request.out = path("out");
    for (auto& input : inputs) request.inputs.push_back(path(input));
    request.validation_fraction = 0.2;
    request.shard_tokens = 300;
    return request;
  }
  static tokenize::PrepareResult run(const tokenize::PrepareRequest& request) {
    DyingFileSystem files(-1);
    return tokenize::prepare(request, files, [](const tokenize::PrepareStatus&) {});
  }
  static std::string message(const tokenize::PrepareRequest& request) {
    try {
      run(request);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::map<std::string, std::string> contents(const std::string& folder) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(folder))) {
      if (entry.is_regular_file()) all[entry.path().filename()] = content(entry.path());
    }
    return all;
  }
  data::Corpus corpus(const std::string& folder = "out") const {
    return data::prepared_corpus(data::prepared_folders({path(folder)}), {});
  }
};

}  // namespace braid
