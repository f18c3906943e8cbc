// braid data train-bpe: learns a byte-level BPE vocabulary from text files and writes a tokenizer.json.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "braid/base/clock.h"
#include "braid/base/file_system.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/terminal.h"
#include "braid/tokenize/bpe_trainer.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/piece_counts.h"
#include "braid/tokenize/tokenizer_file.h"

namespace braid::cli {
namespace {

constexpr int kMaxVocab = 1 << 24;

// The values of options, as the user gave them.
struct BpeOptions {
  std::string vocab, out, min_frequency;
  std::string pattern = "gpt2";
  std::vector<std::string> inputs, include;
  tokenize::ReaderOptions reader;
};

struct Request {
  tokenize::BpeTraining training;
  std::filesystem::path out;  // tokenizer.json to write
  tokenize::DocumentList inputs;
  tokenize::ReaderOptions reader;
};

class Reader {
 public:
  Request read(const BpeOptions& given, const std::vector<std::string>& options) {
    Request request;
    std::vector<std::string> paths;
    for (const auto& word : given.inputs) {
      if (word.starts_with("-") && word.size() > 1) {
        problems_.push_back({word, "", "is not an option of braid data train-bpe", nearest(word, options)});
      } else {
        paths.push_back(word);
      }
    }
    request.training.vocab = static_cast<int>(number("--vocab", given.vocab, {257, kMaxVocab}));
    if (!given.min_frequency.empty()) {
      request.training.min_frequency = number("--min-frequency", given.min_frequency, {1, int64_t{1} << 40});
    }
    const auto names = tokenize::pattern_names();
    if (std::find(names.begin(), names.end(), given.pattern) == names.end()) {
      const std::string rule = cat("must be one of ", joined(names));
      problems_.push_back({"--pattern", given.pattern, rule, nearest(given.pattern, names)});
    }
    request.training.pattern = given.pattern;
    read_out(given.out, request);
    read_inputs(paths, given, request);
    if (given.reader.text_field.empty()) problems_.push_back({"--text-field", "", "must not be empty", "text"});
    request.reader = given.reader;
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return request;
  }

 private:
  struct Range {
    int64_t least, most;
  };

  int64_t number(const char* key, const std::string& text, Range range) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc{} && end == text.data() + text.size();
    if (is_whole && value >= range.least && value <= range.most) return value;
    const int64_t close = is_whole ? std::clamp(value, range.least, range.most) : range.least;
    const std::string rule = cat("must be a whole number from ", range.least, " to ", range.most);
    problems_.push_back({key, text, text.empty() ? "is needed; " + rule : rule, text.empty() ? "" : cat(close)});
    return range.least;
  }

  void read_out(const std::string& out, Request& request) {
    if (out.empty())
      return problems_.push_back({"--out", "", "is needed; the folder to write tokenizer.json into", ""});
    request.out = std::filesystem::path(out) / "tokenizer.json";
    const PathKind kind = path_kind(out);
    if (kind != PathKind::Nothing && kind != PathKind::Folder) {
      problems_.push_back({"--out", out, "must be a folder", ""});
    } else if (path_kind(request.out) != PathKind::Nothing) {
      problems_.push_back({"--out", out, "has a tokenizer.json already; remove it or name another folder", ""});
    }
  }

  void read_inputs(const std::vector<std::string>& paths, const BpeOptions& given, Request& request) {
    if (paths.empty())
      return problems_.push_back({"INPUT", "", "is needed; text files, .jsonl files, folders of them", ""});
    try {
      request.inputs = tokenize::list_documents({.paths = paths, .include = given.include}, given.reader.text_field);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) problems_.push_back(tokenize::of_option("INPUT", problem));
    }
  }

  std::vector<Problem> problems_;
};

std::optional<Request> read_request(const Words& words) {
  CLI::App app("Learns a byte-level BPE vocabulary from text and writes DIR/tokenizer.json.", "braid data train-bpe");
  BpeOptions given;
  app.allow_extras();
  app.add_option("--vocab", given.vocab, "tokens to have, end-of-text and 256 bytes included");
  app.add_option("--out", given.out, "folder for tokenizer.json")->check(output_name());
  app.add_option("--pattern", given.pattern,
                 cat("how text is cut: one of ", joined(tokenize::pattern_names()), " (gpt2)"));
  app.add_option("--min-frequency", given.min_frequency, "least occurrences of a pair that becomes a token (2)");
  add_document_options(app, given.include, given.reader.text_field, given.reader.bad_lines);
  app.footer("INPUT ...  text files, .jsonl files, folders of them");
  if (parse_words(app, words)) return std::nullopt;
  given.inputs = app.remaining();
  std::vector<std::string> options;
  for (const auto* option : app.get_options()) options.push_back(option->get_name());
  return Reader().read(given, options);
}

// A line of progress on a terminal, rewritten at most ten times a second. Other outputs get no such line.
class ProgressLine {
 public:
  void show(const std::string& text) {
    const double now = now_seconds();
    if (!is_terminal_ || now - shown_ < kLeastSeconds) return;
    shown_ = now;
    std::cout << "\r" << text << "\x1b[K" << std::flush;
  }
  void end() {
    if (is_terminal_) std::cout << "\r\x1b[K" << std::flush;
  }

 private:
  static constexpr double kLeastSeconds = 0.1;

  bool is_terminal_ = stdout_is_interactive();
  double shown_ = -kLeastSeconds;
};

tokenize::DocumentPieces counted_pieces(const Request& request, ProgressLine& line) {
  double all = 0;
  for (const auto& file : request.inputs.documents) all += static_cast<double>(file.bytes);
  return tokenize::document_pieces(
      request.inputs.documents, {{tokenize::pattern_regex(request.training.pattern)}}, request.reader,
      [&](int64_t bytes) {
        const double share = static_cast<double>(bytes) / all;
        line.show(cat("counting pieces  ", fixed(100 * share, 0), " % of ", human_bytes(all)));
      });
}

}  // namespace

int train_bpe_command(const Words& words) {
  const auto request = read_request(words);
  if (!request) return 0;
  ProgressLine line;
  const tokenize::DocumentPieces pieces = counted_pieces(*request, line);
  const tokenize::BpeModel model = tokenize::train_bpe(request->training, pieces.counts, [&](int tokens) {
    line.show(cat("merging  ", tokens, " of ", counted(request->training.vocab, "token")));
  });
  line.end();
  PosixFileSystem().create_directories(request->out.parent_path().string());
  write_named_file(request->out.string(), tokenize::tokenizer_json(model));
  std::cout << counted(model.tokens.size(), "token") << " (" << counted(model.merges.size(), "merge") << ") from "
            << pieces.counts.table().size() << " distinct pieces of " << counted(pieces.num_documents, "document")
            << "\n";
  if (model.tokens.size() < static_cast<size_t>(request->training.vocab)) {
    std::cout << "fewer than asked for: no other pair occurs " << counted(request->training.min_frequency, "time")
              << "\n";
  }
  if (pieces.num_bad_lines > 0) std::cout << "skipped " << counted(pieces.num_bad_lines, "bad line") << "\n";
  const std::string passed_over = tokenize::sentence(request->inputs.passed_over);
  if (!passed_over.empty()) std::cout << shown_on_line(passed_over) << "\n";
  std::cout << "wrote " << shown_on_line(request->out.string()) << "\n";
  return 0;
}

}  // namespace braid::cli
