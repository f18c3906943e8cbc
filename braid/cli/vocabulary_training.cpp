// Options, progress and report of commands that learn a vocabulary.
#include "braid/cli/vocabulary_training.h"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "braid/base/clock.h"
#include "braid/base/file_system.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/terminal.h"

namespace braid::cli {
namespace {

constexpr int kMaxVocab = 1 << 24;
constexpr double kLeastSeconds = 0.1;  // between two lines of progress

std::vector<std::string> input_paths(const CLI::App& app, std::vector<Problem>& problems) {
  std::vector<std::string> options, paths;
  for (const auto* option : app.get_options()) options.push_back(option->get_name());
  for (const auto& word : app.remaining()) {
    if (word.starts_with("-") && word.size() > 1) {
      problems.push_back({word, "", cat("is not an option of ", app.get_name()), nearest(word, options)});
    } else {
      paths.push_back(word);
    }
  }
  return paths;
}

std::filesystem::path output_file(const std::string& out, std::vector<Problem>& problems) {
  if (out.empty()) {
    problems.push_back({"--out", "", "is needed; the folder to write tokenizer.json into", ""});
    return {};
  }
  const std::filesystem::path file = std::filesystem::path(out) / "tokenizer.json";
  const PathKind kind = path_kind(out);
  if (kind != PathKind::Nothing && kind != PathKind::Folder) {
    problems.push_back({"--out", out, "must be a folder", ""});
  } else if (path_kind(file) != PathKind::Nothing) {
    problems.push_back({"--out", out, "has a tokenizer.json already; remove it or name another folder", ""});
  }
  return file;
}

tokenize::DocumentList input_documents(const std::vector<std::string>& paths, const VocabularyOptions& options,
                                       std::vector<Problem>& problems) {
  if (paths.empty()) {
    problems.push_back({"INPUT", "", "is needed; text files, .jsonl files, folders of them", ""});
    return {};
  }
  try {
    return tokenize::list_documents({.paths = paths, .include = options.include}, options.reader.text_field);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems.push_back(tokenize::of_option("INPUT", problem));
  }
  return {};
}

}  // namespace

void add_vocabulary_options(CLI::App& app, VocabularyOptions& options, const std::string& vocab_help) {
  app.allow_extras();
  app.add_option("--vocab", options.vocab, vocab_help);
  app.add_option("--out", options.out, "folder for tokenizer.json")->check(output_name());
  app.add_option("--min-frequency", options.min_frequency, "least occurrences of a pair that becomes a token (2)");
  add_document_options(app, options.include, options.reader.text_field, options.reader.bad_lines);
  app.footer("INPUT ...  text files, .jsonl files, folders of them");
}

int64_t whole_number_of(const char* key, const std::string& text, WholeRange range, std::vector<Problem>& problems) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  if (is_whole && value >= range.least && value <= range.most) return value;
  const int64_t close = is_whole ? std::clamp(value, range.least, range.most) : range.least;
  const std::string rule = cat("must be a whole number from ", range.least, " to ", range.most);
  problems.push_back({key, text, text.empty() ? "is needed; " + rule : rule, text.empty() ? "" : cat(close)});
  return range.least;
}

VocabularyRequest read_vocabulary_request(const CLI::App& app, const VocabularyOptions& options, int64_t least_vocab,
                                          std::vector<Problem>& problems) {
  VocabularyRequest request;
  const auto paths = input_paths(app, problems);
  request.vocab = static_cast<int>(whole_number_of("--vocab", options.vocab, {least_vocab, kMaxVocab}, problems));
  if (!options.min_frequency.empty()) {
    request.min_frequency = whole_number_of("--min-frequency", options.min_frequency, {1, int64_t{1} << 40}, problems);
  }
  request.out = output_file(options.out, problems);
  request.inputs = input_documents(paths, options, problems);
  if (options.reader.text_field.empty()) problems.push_back({"--text-field", "", "must not be empty", "text"});
  request.reader = options.reader;
  return request;
}

ProgressLine::ProgressLine() : is_terminal_(stdout_is_interactive()), shown_(-kLeastSeconds) {}

void ProgressLine::show(const std::string& text) {
  const double now = now_seconds();
  if (!is_terminal_ || now - shown_ < kLeastSeconds) return;
  shown_ = now;
  std::cout << "\r" << text << "\x1b[K" << std::flush;
}

void ProgressLine::end() {
  if (is_terminal_) std::cout << "\r\x1b[K" << std::flush;
}

tokenize::DocumentPieces counted_pieces(const VocabularyRequest& request, std::unique_ptr<tokenize::PieceCursor> cursor,
                                        ProgressLine& line) {
  double all = 0;
  for (const auto& file : request.inputs.documents) all += static_cast<double>(file.bytes);
  return tokenize::document_pieces(request.inputs.documents, std::move(cursor), request.reader, [&](int64_t bytes) {
    const double share = static_cast<double>(bytes) / all;
    line.show(cat("counting pieces  ", fixed(100 * share, 0), " % of ", human_bytes(all)));
  });
}

void write_vocabulary(const VocabularyRequest& request, const tokenize::DocumentPieces& pieces,
                      const LearnedVocabulary& learned) {
  PosixFileSystem().create_directories(request.out.parent_path().string());
  write_named_file(request.out.string(), learned.tokenizer_json);
  std::cout << learned.counts << " from " << pieces.counts.table().size() << " distinct pieces of "
            << counted(pieces.num_documents, "document") << "\n";
  if (learned.num_tokens < static_cast<size_t>(request.vocab)) {
    std::cout << "fewer than asked for: no other pair occurs " << counted(request.min_frequency, "time") << "\n";
  }
  if (pieces.num_bad_lines > 0) std::cout << "skipped " << counted(pieces.num_bad_lines, "bad line") << "\n";
  const std::string passed_over = tokenize::sentence(request.inputs.passed_over);
  if (!passed_over.empty()) std::cout << shown_on_line(passed_over) << "\n";
  std::cout << "wrote " << shown_on_line(request.out.string()) << "\n";
}

}  // namespace braid::cli
