// The walk through input folders, and the choice of held-out documents.
#include "braid/tokenize/document_list.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/tokenize/document_reader.h"

namespace braid::tokenize {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamedOfReason = 10, kMostOfPath = 200;

struct Found {
  std::vector<Document> documents;
  PassedOver passed_over;
  std::vector<Problem> problems;  // empty if the path is usable
};

Found faulty(const std::string& path, std::string fault) {
  return {{}, {}, {{"data.paths", path, std::move(fault), ""}}};
}

// Returns the size of a file. Throws if it cannot be opened.
int64_t readable_bytes(const std::string& path) { return CheckedFile(path, Links::Followed).bytes(); }

struct DocumentChoice {
  const std::vector<std::string>& patterns;
  const std::string& text_field;
};

// Finds the text files of a folder that match the patterns, sorted by their path.
class FolderWalk {
 public:
  explicit FolderWalk(const DocumentChoice& choice) : patterns_(choice.patterns), text_field_(choice.text_field) {}

  Found found(const fs::path& folder) {
    walk(folder);
    if (files_.empty()) return faulty(folder, why_empty());
    std::sort(files_.begin(), files_.end());
    for (const auto& file : files_) judge(file);
    if (found_.documents.empty() && found_.problems.empty()) return faulty(folder, why_no_text());
    return std::move(found_);
  }

 private:
  void walk(const fs::path& folder) {
    for (const auto& name : names_in(folder)) {
      const fs::path path = folder / name;
      if (name.starts_with('.')) {  // skipped unread, so its content causes no problem
        pass_over("hidden", path);
        continue;
      }
      const PathKind kind = path_kind(path);
      if (kind == PathKind::Folder && !is_link(path)) {
        walk(path);
      } else if (kind == PathKind::Folder) {
        pass_over("linked", path);
      } else if (included(name)) {
        kind == PathKind::File ? files_.push_back(path)
                               : pass_over(kind == PathKind::Nothing ? "linked" : "special", path);
      }
    }
  }

  void judge(const std::string& file) {
    const int64_t bytes = readable_bytes(file);
    if (bytes == 0) return pass_over("empty", file);
    const FoundFormat found = file_format(file, text_field_);
    const bool lines = is_named_as_lines(file);
    if (!found.is_read()) {
      if (lines) return found_.problems.push_back({"data.paths", file, found.rule(), ""});
      remedies_.try_emplace(found.name, cat(printable(file, kMostOfPath), " ", found.rule()));
      return pass_over(found.name, file);
    }
    if (!lines && !begins_as_text(file)) return pass_over("binary", file);
    found_.documents.push_back({file, bytes, found.format});
  }

  void pass_over(const std::string& reason, const std::string& path) { found_.passed_over[reason].insert(path); }
  bool included(const std::string& name) const {
    return patterns_.empty() ||
           std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) { return matches(name, pattern); });
  }
  std::string why_empty() const {
    if (!patterns_.empty()) return cat("holds no file that data.include names (", joined(patterns_), ")");
    return found_.passed_over.contains("hidden") ? "holds hidden files only" : "holds no file";
  }

  // Returns why none of the files is a document: the remedy for each format, else the reasons for passing files over.
  std::string why_no_text() const {
    const auto empty = found_.passed_over.find("empty");
    if (empty != found_.passed_over.end() && empty->second.size() == files_.size()) return "holds empty files only";
    std::vector<std::string> parts;
    for (const auto& [format, remedy] : remedies_) parts.push_back(remedy);
    return cat("holds no text: ", parts.empty() ? sentence(found_.passed_over) : joined(parts, "; "));
  }

  const std::vector<std::string>& patterns_;
  const std::string& text_field_;
  std::vector<std::string> files_;
  std::map<std::string, std::string> remedies_;  // by format: the first such file and the remedy
  Found found_;
};

Found find(const std::string& path, const DocumentChoice& choice) {
  const PathKind kind = path_kind(path);
  if (kind == PathKind::Nothing) return faulty(path, "does not exist");
  if (kind == PathKind::Other) return faulty(path, "must be a file or a folder");
  if (kind == PathKind::Folder) return FolderWalk(choice).found(path);
  const int64_t bytes = readable_bytes(path);
  if (bytes == 0) return faulty(path, "is empty");
  const FoundFormat found = file_format(path, choice.text_field);
  return found.is_read() ? Found{{{path, bytes, found.format}}, {}, {}} : faulty(path, found.rule());
}

Found find_or_fault(const std::string& path, const DocumentChoice& choice) {
  try {
    return find(path, choice);
  } catch (const IoError& error) {
    return faulty(path, cat("cannot be read (", error.what(), ")"));
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
      p = star + 1;  // the last star matches one character more
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string sentence(const PassedOver& passed_over) {
  std::vector<std::string> parts;
  for (const auto& [reason, paths] : passed_over) {
    std::vector<std::string> named;
    for (const auto& path : paths) {
      named.push_back(named.size() < kMostNamedOfReason ? printable(path, kMostOfPath) : "...");
      if (named.size() > kMostNamedOfReason) break;
    }
    parts.push_back(cat(paths.size(), " ", reason, " (", joined(named), ")"));
  }
  return parts.empty() ? "" : "passed over in folders: " + joined(parts);
}

void add_passed_over(PassedOver& all, const PassedOver& more) {
  for (const auto& [reason, paths] : more) all[reason].insert(paths.begin(), paths.end());
}

DocumentList list_documents(const DataSpec& spec, const std::string& text_field) {
  std::vector<Problem> problems;
  if (spec.paths.empty()) problems.push_back({"data.paths", "", "must name at least one file or folder", ""});
  DocumentList list;
  std::set<std::string> seen;
  for (const auto& path : spec.paths) {
    auto found = find_or_fault(path, {spec.include, text_field});
    problems.insert(problems.end(), found.problems.begin(), found.problems.end());
    for (auto& document : found.documents) {
      if (seen.insert(resolved_path(document.path)).second) list.documents.push_back(std::move(document));
    }
    add_passed_over(list.passed_over, found.passed_over);
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
  if (num_held == 0) {  // every document has more than twice the target's bytes
    const auto smaller = [&](size_t a, size_t b) { return documents[a].bytes < documents[b].bytes; };
    out[*std::min_element(order.begin(), order.end(), smaller)] = true;
  }
  return out;
}

}  // namespace braid::tokenize
