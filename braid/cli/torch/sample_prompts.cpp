// Reads prompts. Standard input is read with read(2), because a stream would take an error for the end.
#include "braid/cli/torch/sample_prompts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/tokenize/document_reader.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfPrompt = 16 << 20;  // bytes, far more than any model's context
constexpr size_t kMostProblems = 20;
constexpr const char* kStandardInput = "-";

// Returns standard input unchanged: a final line break is part of the prompt.
std::string standard_input() {
  std::string text(kMostOfPrompt + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) throw IoError("standard input", -1, cat("cannot be read: ", std::strerror(errno)));
    if (got > 0) size += static_cast<size_t>(got);
  }
  text.resize(size);
  if (text.size() > kMostOfPrompt) {
    throw ConfigError({{"--prompt", kStandardInput, cat("must be at most ", kMostOfPrompt, " bytes"), ""}});
  }
  return text;
}

// Stores the prompt of a line of .jsonl in `prompt`. Returns the rule that the line breaks; empty if it breaks none.
std::string prompt_of(const std::string& line, std::string& prompt) {
  nlohmann::json json;
  const JsonFault fault = read_json(line, json);
  if (fault.line > 0) return fault.why;
  const auto found = json.is_object() ? json.find("prompt") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string()) {
    return "must be a JSON object with a string \"prompt\"";
  }
  prompt = found->get<std::string>();
  return "";
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string content = named_file_content({"--prompts", path, path});
  std::vector<std::string> lines;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    lines.push_back(content.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

void add_lines(const std::string& path, std::vector<std::string>& prompts, std::vector<Problem>& problems) {
  const PathKind kind = path_kind(path);
  if (kind == PathKind::Nothing || kind == PathKind::Folder) {
    problems.push_back({"--prompts", path, kind == PathKind::Nothing ? "does not exist" : "must be a file", ""});
    return;
  }
  const bool json = tokenize::has_lines({path, 0});
  const size_t before = prompts.size();
  int64_t number = 0;
  for (const std::string& line : lines_of(path)) {
    ++number;
    if (line.find_first_not_of(" \t") == line.npos || problems.size() == kMostProblems) continue;
    std::string prompt = line;
    const std::string fault = json ? prompt_of(line, prompt) : "";
    if (!fault.empty()) problems.push_back({cat(path, ":", number), "", fault, ""});
    prompts.push_back(std::move(prompt));
  }
  if (prompts.size() == before) problems.push_back({"--prompts", path, "has no line with a prompt", ""});
}

}  // namespace

std::vector<std::string> read_prompts(const PromptWords& words) {
  std::vector<Problem> problems;
  if (std::count(words.given.begin(), words.given.end(), kStandardInput) > 1) {
    problems.push_back({"--prompt", kStandardInput, "must be given once: standard input is read to its end", ""});
  }
  std::vector<std::string> prompts, of_file;
  if (!words.file.empty()) add_lines(words.file, of_file, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  for (const std::string& word : words.given) prompts.push_back(word == kStandardInput ? standard_input() : word);
  prompts.insert(prompts.end(), of_file.begin(), of_file.end());
  if (prompts.empty()) prompts.emplace_back();
  return prompts;
}

}  // namespace braid::cli
