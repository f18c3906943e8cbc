// The checks of a request, and its comparison with an earlier preparation in the folder.
#include "braid/tokenize/prepare_plan.h"

#include <algorithm>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/spec/data_spec.h"
#include "braid/tokenize/tokenizer_identity.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kMaxProgressBytes = 1'000'000'000;

using Problems = std::vector<Problem>;

// Runs `read`. If it throws ConfigError, adds the problems to `found` under the option at fault.
template <class Read>
void collect(Problems& found, const std::string& option, const Read& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) found.push_back(of_option(option, problem));
  }
}

Problems problems_of(const PrepareRequest& request) {
  Problems found;
  if (request.out.empty()) found.push_back({"--out", "", "must name a folder", ""});
  if (!request.weights.empty() && request.weights.size() != request.inputs.size()) {
    found.push_back({"--weight", cat(request.weights.size(), " given"),
                     cat("must be given once for each INPUT (", request.inputs.size(), ") or not at all"), ""});
  }
  for (const double weight : request.weights) {
    const bool can_be_shared = weight >= 1e-9 && weight <= 1e9;  // the range of data.weights
    if (!can_be_shared) found.push_back({"--weight", exact(weight), "must be from 1e-9 to 1e9", ""});
  }
  if (!(request.validation_fraction >= 0 && request.validation_fraction <= 0.9)) {
    const double nearest = request.validation_fraction > 0.9 ? 0.9 : 0;
    found.push_back(
        {"--validation-fraction", exact(request.validation_fraction), "must be from 0 to 0.9", exact(nearest)});
  }
  if (request.shard_tokens < 1) {
    found.push_back({"--shard-tokens", cat(request.shard_tokens), "must be at least 1", "1"});
  }
  if (request.text_field.empty()) found.push_back({"--text-field", "", "must not be empty", "text"});
  if (request.threads < 1 || request.threads > 256) {
    found.push_back({"--threads", cat(request.threads), "must be from 1 to 256", request.threads < 1 ? "1" : "256"});
  }
  return found;
}

// Refuses an output folder inside an input: a resumed preparation would read its own output.
void refuse_out_in_input(const PrepareRequest& request, Problems& found) {
  const auto out = resolved_path(request.out) + "/";
  for (const auto& input : request.inputs) {
    if (path_kind(input) != PathKind::Folder || !out.starts_with(resolved_path(input) + "/")) continue;
    found.push_back({"--out", request.out, cat("must not lie inside the input ", input), ""});
  }
}

// The kind of digest is fixed, because digests of earlier calls are compared with it.
uint64_t digest(const std::string& text) { return digest_of(DigestKind::Xxh64, text); }

data::PreparedSource source_of(const std::vector<std::string>& inputs, double weight,
                               const std::vector<Document>& files) {
  data::PreparedSource source{{}, weight, 0, static_cast<int64_t>(files.size()), 0, {}};
  for (const auto& input : inputs) source.inputs.push_back(whole_characters(input));
  std::string listing;
  for (const auto& file : files) {
    listing += cat(file.path, '\0', file.bytes, '\n');
    source.text_bytes += file.bytes;
  }
  source.listing = digest(listing);
  return source;
}

void add_sources(const PrepareRequest& request, PreparePlan& plan, Problems& found) {
  std::vector<std::vector<std::string>> groups = {request.inputs};
  if (!request.weights.empty()) {
    groups.clear();
    for (const auto& input : request.inputs) groups.push_back({input});
  }
  for (size_t s = 0; s < groups.size(); ++s) {
    collect(found, "INPUT", [&] {
      auto [files, passed_over] = list_documents({.paths = groups[s], .include = request.include}, request.text_field);
      add_passed_over(plan.passed_over, passed_over);
      const double weight = s < request.weights.size() ? request.weights[s] : 0;
      plan.manifest.sources.push_back(source_of(groups[s], weight, files));
      plan.files.push_back(std::move(files));
    });
  }
}

// Returns the manifest without the results of a preparation, which leaves what the request determines.
data::PreparedManifest without_parts(data::PreparedManifest manifest) {
  for (auto& source : manifest.sources) {
    source.parts.clear();
    source.bad_lines = source.num_documents = 0;
  }
  return manifest;
}

// Returns a problem for each option that differs from the earlier call's.
Problems changed_options(const data::PreparedManifest& now, const data::PreparedManifest& was, const std::string& out) {
  Problems found;
  const std::string rule = cat("must be as in ", out, ", which holds other data (or name another --out)");
  const auto compare = [&](const char* option, const std::string& value, const std::string& before) {
    if (value != before) found.push_back({option, value, rule, before});
  };
  const auto mark = [](const data::TokenizerMark& tokenizer) {
    return cat(tokenizer.name, " ", hex(tokenizer.identity), " with end of text ", tokenizer.end_of_text);
  };
  compare("--tokenizer", mark(now.tokenizer), mark(was.tokenizer));
  compare("--validation-fraction", exact(now.validation_fraction), exact(was.validation_fraction));
  compare("--shard-tokens", cat(now.shard_tokens), cat(was.shard_tokens));
  compare("--text-field", now.text_field, was.text_field);
  compare("--include", joined(now.include), joined(was.include));
  const auto inputs = [](const data::PreparedManifest& manifest) {
    std::string text;
    for (const auto& source : manifest.sources) {
      text += cat(text.empty() ? "" : "; ", joined(source.inputs), source.weight > 0 ? cat(" x ", source.weight) : "");
    }
    return text;
  };
  compare("INPUT", inputs(now), inputs(was));
  return found;
}

// Refuses a request that does not skip bad lines if the earlier call skipped some: their documents are missing. If the
// earlier call found no bad line, its data does not depend on the option.
void refuse_missing_lines(const PrepareRequest& request, const data::PreparedManifest& was, Problems& found) {
  int64_t bad_lines = 0;
  for (const auto& source : was.sources) bad_lines += source.bad_lines;
  if (bad_lines == 0 || request.bad_lines == BadLines::Skipped) return;
  found.push_back({"--skip-bad-lines", "",
                   cat("must be given as when ", request.out, " was begun, which has passed over ",
                       counted(bad_lines, "bad line"), " (or name another --out)"),
                   ""});
}

// Returns the changes since the folder was begun: changed options, or if there are none, changed files.
Problems differences(const PrepareRequest& request, const PreparePlan& plan, const data::PreparedManifest& manifest) {
  const data::PreparedManifest was = without_parts(manifest);
  Problems found = changed_options(plan.manifest, was, request.out);
  refuse_missing_lines(request, manifest, found);
  if (!found.empty()) return found;
  if (const auto record = recorded_inputs(request.out)) found = changed_inputs(plan.record, *record, request.out);
  if (found.empty() && plan.manifest != was) {
    found.push_back({"INPUT", "", cat("has other files or sizes than when ", request.out, " was begun"), ""});
  }
  return found;
}

// Returns true for an empty or missing folder. Ignores the files of a call that was interrupted before its first
// progress.json.
bool holds_nothing(const std::string& folder) {
  const PathKind kind = path_kind(folder);
  if (kind == PathKind::Nothing) return true;
  if (kind != PathKind::Folder) throw ConfigError({{"--out", folder, "must be a folder", ""}});
  const auto names = names_in(folder);
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with(".tmp") || name == kInputRecordName; });
}

}  // namespace

PreparePlan prepare_plan(const PrepareRequest& request) {
  Problems found = problems_of(request);
  PreparePlan plan;
  collect(found, "--tokenizer", [&] { plan.tokenizer = make_tokenizer(request.tokenizer); });
  add_sources(request, plan, found);
  if (!request.out.empty()) refuse_out_in_input(request, found);
  if (!found.empty()) throw ConfigError(std::move(found));

  auto& manifest = plan.manifest;
  manifest.tokenizer = {request.tokenizer == kByteTokenizer ? kByteTokenizer : "tokenizer",
                        tokenizer_identity(request.tokenizer), plan.tokenizer->vocab(), plan.tokenizer->end_of_text()};
  manifest.validation_fraction = request.validation_fraction;
  manifest.shard_tokens = request.shard_tokens;
  manifest.include = request.include;
  manifest.text_field = request.text_field;
  plan.record = input_record(plan.files);
  return plan;
}

std::optional<data::PrepareProgress> earlier_progress(const PrepareRequest& request, const PreparePlan& plan) {
  const std::string path = request.out + "/progress.json";
  data::PrepareProgress progress;
  const auto is_there = [](const std::string& file) { return path_kind(file) != PathKind::Nothing; };
  if (is_there(request.out + "/manifest.json") && data::is_prepared(request.out)) {
    progress = {data::read_prepared_manifest(request.out), {static_cast<int64_t>(plan.files.size())}};
  } else if (is_there(path)) {
    if (!is_there(request.out + "/" + kInputRecordName)) {
      throw ConfigError({{"--out", request.out,
                          cat("must be another folder: its list of input files is not there (", kInputRecordName,
                              " is missing, as older versions left it)"),
                          ""}});
    }
    progress = data::parse_prepare_progress(path, CheckedFile(path).content(kMaxProgressBytes));
  } else if (holds_nothing(request.out)) {
    return std::nullopt;
  } else {
    throw ConfigError({{"--out", request.out, "must be a new or empty folder", ""}});
  }
  auto found = differences(request, plan, progress.manifest);
  if (!found.empty()) throw ConfigError(std::move(found));
  return progress;
}

}  // namespace braid::tokenize
