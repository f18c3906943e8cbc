// Walks folders and chooses the documents held out. It reads no file's content.
#include "braid/data/document_list.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::vector<Document> documents;
  std::string fault;  // what rule the entry breaks; empty when it is good
};

bool readable(const fs::path& path) { return ::access(path.c_str(), R_OK) == 0; }

bool included(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) { return matches(name, pattern); });
}

// Regular files of `folder` that the patterns name, sorted by their path below it.
std::vector<fs::path> files_below(const fs::path& folder, const std::vector<std::string>& patterns) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && included(entry.path().filename().string(), patterns)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return files;
}

Found find(const fs::path& path, const std::vector<std::string>& patterns) {
  const auto status = fs::status(path);
  if (!fs::exists(status)) return {{}, "does not exist"};
  const bool folder = fs::is_directory(status);
  if (!folder && !fs::is_regular_file(status)) return {{}, "must be a file or a folder"};
  const auto files = folder ? files_below(path, patterns) : std::vector<fs::path>{path};
  if (files.empty() && patterns.empty()) return {{}, "holds no file"};
  if (files.empty()) return {{}, cat("holds no file that data.include names (", joined(patterns), ")")};
  Found found;
  for (const auto& file : files) {
    if (!readable(file)) return {{}, cat(folder ? file.string() + " " : "", "cannot be read")};
    const auto bytes = static_cast<int64_t>(fs::file_size(file));
    if (bytes > 0) found.documents.push_back({file.string(), bytes});
  }
  if (found.documents.empty()) found.fault = folder ? "holds empty files only" : "is empty";
  return found;
}

Found find_or_fault(const std::string& path, const std::vector<std::string>& patterns) {
  try {
    return find(path, patterns);
  } catch (const fs::filesystem_error& error) {
    return {{}, cat("cannot be read (", error.code().message(), ")")};
  }
}

}  // namespace

bool matches(std::string_view name, std::string_view pattern) {
  size_t n = 0, p = 0, star = std::string_view::npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;  // the last star takes one character more
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<Document> list_documents(const DataSpec& spec) {
  std::vector<Problem> problems;
  if (spec.paths.empty()) problems.push_back({"data.paths", "", "must name at least one file or folder", ""});
  std::vector<Document> documents;
  std::set<std::string> seen;
  for (const auto& path : spec.paths) {
    auto found = find_or_fault(path, spec.include);
    if (!found.fault.empty()) problems.push_back({"data.paths", path, found.fault, ""});
    for (auto& document : found.documents) {
      if (seen.insert(fs::canonical(document.path).native()).second) documents.push_back(std::move(document));
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return documents;
}

std::vector<bool> held_out(const std::vector<Document>& documents, double fraction) {
  const size_t n = documents.size();
  std::vector<bool> out(n, false);
  if (n < 2 || fraction <= 0) return out;
  const uint64_t key = stream_key(0, "data.validation");
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return random_bits(key, a) < random_bits(key, b); });

  double total = 0, held = 0;
  for (const auto& document : documents) total += static_cast<double>(document.bytes);
  const double target = fraction * total;
  size_t num_held = 0;
  for (const size_t i : order) {
    const double with = held + static_cast<double>(documents[i].bytes);
    if (num_held + 1 == n || std::abs(with - target) >= std::abs(held - target)) continue;
    out[i] = true;
    held = with;
    ++num_held;
  }
  if (num_held == 0) {  // every document is more than twice the target
    const auto smaller = [&](size_t a, size_t b) { return documents[a].bytes < documents[b].bytes; };
    out[*std::min_element(order.begin(), order.end(), smaller)] = true;
  }
  return out;
}

}  // namespace braid
