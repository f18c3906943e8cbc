// Walks folders and chooses the documents held out.
#include "braid/tokenize/document_list.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/tokenize/text_check.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::vector<Document> documents;
  PassedOver passed_over;
  std::string fault;  // what rule the entry breaks; empty when it is good
};

Found faulty(std::string fault) { return {{}, {}, std::move(fault)}; }

// Of a file that can be opened.
int64_t readable_bytes(const std::string& path) { return CheckedFile(path, Links::Followed).bytes(); }

// The text files of a folder that the patterns name, sorted by their path below it.
class FolderWalk {
 public:
  explicit FolderWalk(const std::vector<std::string>& patterns) : patterns_(patterns) {}

  void walk(const fs::path& folder) {
    for (const auto& name : names_in(folder)) {
      if (name.starts_with('.')) {  // not looked at: what it leads to refuses nothing
        ++passed_over_.hidden;
        continue;
      }
      const fs::path path = folder / name;
      const PathKind kind = path_kind(path);
      const bool wanted = kind == PathKind::Folder ? !is_link(path) : kind == PathKind::File && included(name);
      if (!wanted) continue;
      if (kind == PathKind::Folder) {
        walk(path);
      } else {
        files_.push_back(path);
      }
    }
  }

  Found found() {
    if (files_.empty()) return faulty(why_empty());
    std::sort(files_.begin(), files_.end());
    Found found{{}, passed_over_, ""};
    for (const auto& file : files_) {
      const int64_t bytes = readable_bytes(file);
      if (bytes == 0) continue;
      if (begins_as_text(file)) {
        found.documents.push_back({file, bytes});
      } else {
        ++found.passed_over.binary;
      }
    }
    if (!found.documents.empty()) return found;
    return faulty(found.passed_over.binary > 0 ? "holds no text" : "holds empty files only");
  }

 private:
  bool included(const std::string& name) const {
    return patterns_.empty() ||
           std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) { return matches(name, pattern); });
  }
  std::string why_empty() const {
    if (!patterns_.empty()) return cat("holds no file that data.include names (", joined(patterns_), ")");
    return passed_over_.hidden > 0 ? "holds hidden files only" : "holds no file";
  }

  const std::vector<std::string>& patterns_;
  std::vector<std::string> files_;
  PassedOver passed_over_;
};

Found find(const std::string& path, const std::vector<std::string>& patterns) {
  const PathKind kind = path_kind(path);
  if (kind == PathKind::Nothing) return faulty("does not exist");
  if (kind == PathKind::Other) return faulty("must be a file or a folder");
  if (kind == PathKind::Folder) {
    FolderWalk walk(patterns);
    walk.walk(path);
    return walk.found();
  }
  const int64_t bytes = readable_bytes(path);
  return bytes > 0 ? Found{{{path, bytes}}, {}, ""} : faulty("is empty");
}

Found find_or_fault(const std::string& path, const std::vector<std::string>& patterns) {
  try {
    return find(path, patterns);
  } catch (const IoError& error) {
    return faulty(cat("cannot be read (", error.what(), ")"));
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

std::string sentence(const PassedOver& passed_over) {
  std::vector<std::string> parts;
  if (passed_over.hidden > 0) parts.push_back(cat(passed_over.hidden, " hidden"));
  if (passed_over.binary > 0) parts.push_back(cat(passed_over.binary, " binary"));
  return parts.empty() ? "" : "passed over in folders: " + joined(parts);
}

DocumentList list_documents(const DataSpec& spec) {
  std::vector<Problem> problems;
  if (spec.paths.empty()) problems.push_back({"data.paths", "", "must name at least one file or folder", ""});
  DocumentList list;
  std::set<std::string> seen;
  for (const auto& path : spec.paths) {
    auto found = find_or_fault(path, spec.include);
    if (!found.fault.empty()) problems.push_back({"data.paths", path, found.fault, ""});
    for (auto& document : found.documents) {
      if (seen.insert(resolved_path(document.path)).second) list.documents.push_back(std::move(document));
    }
    list.passed_over.hidden += found.passed_over.hidden;
    list.passed_over.binary += found.passed_over.binary;
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return list;
}

Problem of_option(const std::string& option, Problem problem) {
  constexpr std::string_view kInclude = "data.include";
  const size_t at = problem.rule.find(kInclude);
  if (at != std::string::npos) problem.rule.replace(at, kInclude.size(), "--include");
  if (problem.key == "data.paths" || problem.key == "data.tokenizer") problem.key = option;
  return problem;
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
