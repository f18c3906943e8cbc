// The parts that braid data train-bpe and train-wordpiece share: options, progress and the report.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/piece_counts.h"

namespace braid::cli {

// The values of options, as the user gave them.
struct VocabularyOptions {
  std::string vocab, out, min_frequency;
  std::vector<std::string> include;
  tokenize::ReaderOptions reader;
};

// Adds --vocab, --out, --min-frequency and those of documents. `vocab_help` is the help of --vocab.
void add_vocabulary_options(CLI::App& app, VocabularyOptions& options, const std::string& vocab_help);

struct VocabularyRequest {
  int vocab = 0;
  int64_t min_frequency = 2;
  std::filesystem::path out;  // tokenizer.json to write
  tokenize::DocumentList inputs;
  tokenize::ReaderOptions reader;
};

struct WholeRange {
  int64_t least, most;
};

// Returns the whole number in `text`. Adds a problem and returns the least number if it has none in `range`.
int64_t whole_number_of(const char* key, const std::string& text, WholeRange range, std::vector<Problem>& problems);

// Reads the options that both commands have. The other words of the command line are its inputs. Adds a problem for
// everything that is wrong.
VocabularyRequest read_vocabulary_request(const CLI::App& app, const VocabularyOptions& options, int64_t least_vocab,
                                          std::vector<Problem>& problems);

// A line of progress on a terminal, rewritten at most ten times a second. Other outputs get no such line.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& text);
  void end();

 private:
  bool is_terminal_;
  double shown_;
};

// Counts the pieces that `cursor` cuts from the inputs.
tokenize::DocumentPieces counted_pieces(const VocabularyRequest& request, std::unique_ptr<tokenize::PieceCursor> cursor,
                                        ProgressLine& line);

struct LearnedVocabulary {
  std::string tokenizer_json;
  size_t num_tokens = 0;
  std::string counts;  // "300 tokens (43 merges)"
};

// Writes the tokenizer.json and prints a report.
void write_vocabulary(const VocabularyRequest& request, const tokenize::DocumentPieces& pieces,
                      const LearnedVocabulary& learned);

}  // namespace braid::cli
