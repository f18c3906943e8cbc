// One line at a time into a new file, which then takes the old one's place.
#include "braid/report/metrics_cut.h"

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

// Lines are of the step that they name, of the one that a start names, or of the line before them.
class History {
 public:
  explicit History(int64_t last_step) : last_step_(last_step) {}

  // Counts a line that goes.
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

// Calls `on_kept` with each line that stays, its end included. Returns what goes.
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

}  // namespace braid::report
