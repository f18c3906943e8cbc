// braid report: one HTML page from a run's folder. It needs no LibTorch.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/output_file.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/run_page.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = 4'000'000'000;  // of any file of a run

// A run that still goes on, or that was killed, has no timeline; the page does without.
std::vector<NamedTimeline> timelines_of(const fs::path& run) {
  const fs::path trace = run / "trace.json";
  if (path_kind(trace) == PathKind::Nothing) return {};
  return parse_chrome_trace(file_content(trace, kMostBytes), trace);
}

void refuse_what_is_no_run(const fs::path& run) {
  std::vector<Problem> found;
  if (path_kind(run) != PathKind::Folder)
    throw ConfigError({{"RUN", run, "must be the folder of a run (train.out)", ""}});
  for (const char* name : {"config.toml", "metrics.jsonl"}) {
    if (path_kind(run / name) != PathKind::File) {
      found.push_back({(run / name).string(), "", "is missing; braid train writes it into train.out", ""});
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
}

RunRecord record_of(const fs::path& metrics) {
  std::istringstream lines(file_content(metrics, kMostBytes));
  RunRecord record = read_run_record(lines);
  if (record.first_steps.empty() && record.steps.empty()) {
    throw ConfigError({{metrics.string(), "", "must hold the lines of a run (docs/metrics_format.md)", ""}});
  }
  return record;
}

}  // namespace

int report_command(const Words& words) {
  CLI::App app(
      "Writes a page about a run: curves, timeline, memory, configuration. One HTML file, nothing from outside.",
      "braid report");
  std::string run, out;
  app.add_option("RUN", run, "the run's folder (train.out)")->required();
  app.add_option("--out", out, "the file to write; RUN/report.html when not given");
  if (const auto code = parse_words(app, words)) return *code;

  fs::path folder = fs::path(run).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  refuse_what_is_no_run(folder);
  RunPage page;
  page.name = folder.filename() == "." ? fs::current_path().filename() : folder.filename();
  page.config_toml = file_content(folder / "config.toml", kMostBytes);
  page.record = record_of(folder / "metrics.jsonl");
  page.timelines = timelines_of(folder);
  if (out.empty()) out = folder / "report.html";
  write_file(out, run_page(page));
  std::cout << out << "\n";
  return 0;
}

}  // namespace braid
