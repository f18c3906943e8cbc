// One line at a time into a new file, which then takes the old one's place.
#include "braid/report/metrics_cut.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/line_reader.h"

namespace braid {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Lines are of the step that they name, of the one that a start names, or of the line before them.
class History {
 public:
  explicit History(int64_t last_step) : last_step_(last_step) {}

  bool keeps(const std::string& text) {
    nlohmann::json line;
    if (read_json(text, line).line > 0 || !line.is_object()) return false;
    for (const char* key : {"step", "first_step"}) {
      const auto found = line.find(key);
      if (found == line.end() || !found->is_number()) continue;
      gone_ = found->get<double>() > static_cast<double>(last_step_);
      break;
    }
    return !gone_;
  }

 private:
  int64_t last_step_;
  bool gone_ = false;
};

// Calls `on_kept` with each line that stays, its end included. Returns how many go.
template <class OnKept>
int64_t for_each_kept(const std::string& path, int64_t last_step, const OnKept& on_kept) {
  LineReader lines(path, Links::Followed);
  History history(last_step);
  int64_t num_gone = 0;
  for (std::string text; lines.next(text);) {
    if (history.keeps(text)) {
      on_kept(text + "\n");
    } else {
      ++num_gone;
    }
  }
  return num_gone;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string cut_metrics_name(const std::string& path) { return path + ".tmp"; }

int64_t cut_metrics(const std::string& path, int64_t last_step, FileSystem& files) {
  if (!files.exists(path)) return 0;
  const int64_t num_gone = for_each_kept(path, last_step, [](const std::string&) {});
  if (num_gone == 0) return 0;
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
  return num_gone;
}

}  // namespace braid
