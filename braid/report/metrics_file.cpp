// The metrics file: appending lines, and removing lines of later steps.
#include "braid/report/metrics_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/line_reader.h"
#include "braid/base/text.h"

namespace braid::report {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Decides which lines stay. A line belongs to its "step" or "first_step", or else to the step of the line before it.
class History {
 public:
  explicit History(int64_t last_step) : last_step_(last_step) {}

  // Returns true if the line stays. Counts lines that do not.
  bool keeps(const std::string& text) {
    nlohmann::json line;
    if (read_json(text, line).line > 0 || !line.is_object()) return ++cut_.unreadable, false;
    for (const char* key : {"step", "first_step"}) {
      const auto found = line.find(key);
      if (found == line.end() || !found->is_number()) continue;
      gone_ = found->get<double>() > static_cast<double>(last_step_);
      break;
    }
    cut_.later += gone_ ? 1 : 0;
    return !gone_;
  }
  const CutLines& cut() const { return cut_; }

 private:
  int64_t last_step_;
  CutLines cut_;
  bool gone_ = false;
};

// Calls `on_kept` with each line that stays, including its line end. Returns the counts of lines to remove.
template <class OnKept>
CutLines for_each_kept(const std::string& path, int64_t last_step, const OnKept& on_kept) {
  LineReader lines(path, Links::Followed);
  History history(last_step);
  for (std::string text; lines.next(text);) {
    if (history.keeps(text)) on_kept(text + "\n");
  }
  return history.cut();
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string cut_metrics_name(const std::string& path) { return path + ".tmp"; }

CutLines cut_metrics(const std::string& path, int64_t last_step, FileSystem& files) {
  if (!files.exists(path)) return {};
  const CutLines cut = for_each_kept(path, last_step, [](const std::string&) {});
  if (cut == CutLines()) return cut;
  const std::string name = cut_metrics_name(path);
  files.remove_all(name);
  const auto file = files.create(name);
  std::string chunk;
  const auto flush = [&] {
    file->append(std::as_bytes(std::span(chunk)));
    chunk.clear();
  };
  for_each_kept(path, last_step, [&](const std::string& line) {
    chunk += line;
    if (chunk.size() >= kChunkBytes) flush();
  });
  flush();
  file->sync();
  file->close();
  files.replace(name, path);
  files.sync_directory(folder_of(path));
  return cut;
}

std::string sentence(const CutLines& cut, int64_t last_step) {
  std::vector<std::string> parts;
  if (cut.later > 0) parts.push_back(cat(cut.later, " of steps after ", last_step));
  if (cut.unreadable > 0) parts.push_back(cat(cut.unreadable, " unreadable"));
  if (parts.empty()) return "";
  return cat("took ", counted(cut.later + cut.unreadable, "line"), " out of metrics.jsonl: ", joined(parts));
}

namespace {

std::string json(double value) {
  if (!std::isfinite(value)) return "null";
  std::string digits = exact(value);
  // A bare "-0" or "5" would be read back as an integer, and -0 would lose its sign.
  if (digits.find_first_of(".e") == digits.npos) digits += ".0";
  return digits;
}

std::string json(int value) { return std::to_string(value); }

std::string json(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

template <class Values>
std::string json_list(const Values& values) {
  std::string list = "[";
  for (const auto& value : values) {
    if (list.size() > 1) list += ',';
    list += json(value);
  }
  return list += ']';
}

}  // namespace

MetricsLine& MetricsLine::put(std::string_view key, std::string_view value) {
  if (!fields_.empty()) fields_ += ',';
  fields_ += json(key);
  fields_ += ':';
  fields_ += value;
  return *this;
}

MetricsLine& MetricsLine::add(std::string_view key, double value) { return put(key, json(value)); }
MetricsLine& MetricsLine::add(std::string_view key, std::string_view value) { return put(key, json(value)); }
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<double>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<int>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<std::string>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::map<std::string, double>& object) {
  MetricsLine line;
  for (const auto& [name, value] : object) line.add(name, value);
  return add(key, line);
}
MetricsLine& MetricsLine::add(std::string_view key, const MetricsLine& object) { return put(key, object.text()); }

MetricsFile::MetricsFile(std::string path) : path_(std::move(path)), file_(open_to_append(path_)) {
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail(-1);
  if (std::ftell(file_.get()) == 0) return;
  if (std::fseek(file_.get(), -1, SEEK_END) != 0) fail(-1);
  const bool whole = std::fgetc(file_.get()) == '\n';
  std::fseek(file_.get(), 0, SEEK_END);
  if (!whole) std::fputc('\n', file_.get());
}

void MetricsFile::write(const MetricsLine& line) {
  struct stat about {};
  if (::fstat(::fileno(file_.get()), &about) == 0 && about.st_nlink == 0) {
    throw IoError(path_, -1, "was removed while it was written; what would be added to it is lost");
  }
  const std::string text = line.text() + "\n";
  const int64_t offset = std::ftell(file_.get());
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail(offset);
  if (std::fflush(file_.get()) != 0) fail(offset);
}

void MetricsFile::fail(int64_t offset) const { throw IoError(path_, offset, std::strerror(errno)); }

}  // namespace braid::report
