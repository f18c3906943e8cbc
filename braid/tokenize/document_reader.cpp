// The reader of documents: whole files, or lines of JSON.
#include "braid/tokenize/document_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/json_text.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/tokenize/text_corpus.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kHeadBytes = 8192;

}  // namespace

bool is_text_so_far(std::string_view head) {
  for (size_t at = 0; at < head.size();) {
    const Utf8Char c = utf8_at(head, at);
    if (c.code == kNotUtf8) return begins_character(head.substr(at));
    if (c.code == 0) return false;
    at += c.bytes;
  }
  return true;
}

bool begins_as_text(const std::string& path) {
  const CheckedFile file(path, Links::Followed);
  std::string head(static_cast<size_t>(std::min(file.bytes(), kHeadBytes)), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  return is_text_so_far(head);
}

namespace {

constexpr size_t kMostProblems = 20;

// Returns the number of line ends in a file's first `offset` bytes.
int64_t lines_before(const std::string& path, int64_t offset) {
  constexpr int64_t kStepBytes = 1 << 20;
  const CheckedFile file(path, Links::Followed);
  std::string bytes;
  int64_t lines = 0;
  for (int64_t at = 0; at < offset; at += kStepBytes) {
    bytes.resize(static_cast<size_t>(std::min(kStepBytes, offset - at)));
    file.read(at, std::as_writable_bytes(std::span(bytes)));
    lines += std::count(bytes.begin(), bytes.end(), '\n');
  }
  return lines;
}

}  // namespace

bool has_lines(const Document& file) { return file.format == FileFormat::JsonLines || is_named_as_lines(file.path); }

DocumentReader::DocumentReader(std::vector<Document> files, ReaderOptions options)
    : files_(std::move(files)), options_(std::move(options)), held_out_(files_.size(), false) {
  std::vector<Document> whole;
  for (const auto& file : files_) {
    if (!has_lines(file)) whole.push_back(file);
  }
  single_ = files_.size() == 1 && whole.size() == 1 && options_.validation_fraction > 0;
  const auto out = held_out(whole, options_.validation_fraction);
  for (size_t i = 0, w = 0; i < files_.size(); ++i) {
    if (!has_lines(files_[i])) held_out_[i] = out[w++];
  }
}

void DocumentReader::seek(int64_t file, int64_t offset) {
  file_ = static_cast<size_t>(file);
  offset_ = offset;
  lines_.reset();
}

std::optional<ReadDocument> DocumentReader::next() {
  auto document = next_good();
  while (document && !problems_.empty()) document = next_good();  // discarded; reads on for more bad lines
  if (!problems_.empty()) refuse_bad_lines();
  return document;
}

std::optional<ReadDocument> DocumentReader::next_good() {
  while (file_ < files_.size()) {
    if (!has_lines(files_[file_])) return whole_file();
    if (auto document = next_line()) return document;
    seek(static_cast<int64_t>(file_) + 1, 0);
  }
  return std::nullopt;
}

ReadDocument DocumentReader::whole_file() {
  const Side side = single_ ? Side::SplitEnd : held_out_[file_] ? Side::Validation : Side::Train;
  ReadDocument document{content(files_[file_]), side, static_cast<int64_t>(file_) + 1, 0, num_bad_lines_};
  seek(document.next_file, 0);
  return document;
}

std::optional<ReadDocument> DocumentReader::next_line() {
  const std::string& path = files_[file_].path;
  if (!lines_) {
    lines_.emplace(path, Links::Followed, options_.line_limit);
    lines_->seek(offset_);
    line_ = offset_ == 0 ? 0 : -1;
  }
  static const uint64_t kKey = stream_key(0, "data.validation");
  for (std::string line; read_line(line);) {
    auto text = text_of(line);
    offset_ = lines_->offset();
    if (!text || text->empty()) continue;
    const double place = uniform(kKey, digest_of(DigestKind::Xxh64, *text));
    const Side side = place < options_.validation_fraction ? Side::Validation : Side::Train;
    return ReadDocument{std::move(*text), side, static_cast<int64_t>(file_), offset_, num_bad_lines_};
  }
  if (offset_ != files_[file_].bytes) throw IoError(path, offset_, "has changed since it was listed");
  return std::nullopt;
}

// A line above the limit is always an error: the next line is found only by reading this one to its end.
bool DocumentReader::read_line(std::string& line) {
  try {
    if (!lines_->next(line)) return false;
  } catch (const LongLine&) {
    if (line_ >= 0) ++line_;
    const std::string rule = cat("must be a line of at most ", options_.line_limit, " bytes");
    problems_.push_back({cat(files_[file_].path, ":", line_number()), "", rule, ""});
    throw ConfigError(std::move(problems_));
  }
  if (line_ >= 0) ++line_;
  return true;
}

std::optional<std::string> DocumentReader::text_of(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return std::nullopt;
  nlohmann::json json;
  const JsonFault fault = read_json(line, json);
  if (fault.line == 0 && json.is_object()) {
    const auto found = json.find(options_.text_field);
    if (found != json.end() && found->is_string()) return found->get<std::string>();
  }
  add_bad_line(fault.line > 0 ? fault.why : cat("must be a JSON object with a string \"", options_.text_field, "\""));
  return std::nullopt;
}

int64_t DocumentReader::line_number() {
  if (line_ < 0) line_ = 1 + lines_before(files_[file_].path, offset_);
  return line_;
}

void DocumentReader::add_bad_line(const std::string& rule) {
  ++num_bad_lines_;
  if (options_.bad_lines == BadLines::Skipped) return;
  problems_.push_back({cat(files_[file_].path, ":", line_number()), "", rule, ""});
  if (problems_.size() == kMostProblems) refuse_bad_lines();
}

void DocumentReader::refuse_bad_lines() {
  problems_.push_back(
      {"", "",
       "braid data prepare, train-bpe and train-wordpiece pass over such lines with --skip-bad-lines, and count them",
       ""});
  throw ConfigError(std::move(problems_));
}

}  // namespace braid::tokenize
