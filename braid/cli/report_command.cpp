// braid report: one HTML page from a run's folder, of whatever is there to be read. It needs no LibTorch.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/output_file.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/run_page.h"
#include "braid/spec/toml_document.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunConfig = "config.toml";
constexpr const char* kRunMetrics = "metrics.jsonl";
constexpr const char* kRunTrace = "trace.json";
constexpr const char* kNotThere = "is missing";

// Why a file of the run cannot be read; empty when it can.
std::string fault_of(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) return kNotThere;
  if (failure) return cat("cannot be read: ", failure.message());
  if (!fs::is_regular_file(status)) return "is no file";
  if (::access(path.c_str(), R_OK) != 0) return cat("cannot be read: ", std::strerror(errno));
  return "";
}

// Reads what a run's folder holds. What it does not hold, or holds in pieces, becomes a fault of the page.
class RunReader {
 public:
  explicit RunReader(fs::path run) : run_(std::move(run)) {}

  RunPage page() {
    std::error_code unknown;
    if (!fs::is_directory(run_, unknown)) {
      throw ConfigError({{"RUN", run_, "must be the folder of a run (train.out)", ""}});
    }
    RunPage page;
    page.config_toml = config();
    page.record = record();
    if (faulty_.contains(kRunConfig) && faulty_.contains(kRunMetrics)) refuse();
    page.timelines = timelines();
    page.faults = std::move(faults_);
    return page;
  }

 private:
  void fault(const char* file, const std::string& what) {
    faulty_.insert(file);
    faults_.push_back(cat(file, " ", what));
  }

  // Opens what can be read; the file is a fault of the page otherwise.
  std::optional<std::ifstream> opened(const char* file) {
    const std::string why = fault_of(run_ / file);
    if (why.empty()) return std::ifstream(run_ / file, std::ios::binary);
    fault(file, why);
    return std::nullopt;
  }

  std::string contents(const char* file) {
    std::optional<std::ifstream> from = opened(file);
    std::ostringstream text;
    if (from) text << from->rdbuf();
    return text.str();
  }

  std::string config() {
    const std::string toml = contents(kRunConfig);
    if (toml.empty() && !faulty_.contains(kRunConfig)) fault(kRunConfig, "is empty");
    for (const Problem& problem : toml_document(toml, kRunConfig).problems) {
      faults_.push_back(cat(text(problem), "; it is shown as it is"));
    }
    return toml;
  }

  RunRecord record() {
    std::optional<std::ifstream> lines = opened(kRunMetrics);
    if (!lines) return {};
    RunRecord record = read_run_record(*lines);
    const int64_t damaged = record.num_damaged_lines;
    if (record.first_steps.empty() && record.steps.empty()) {
      fault(kRunMetrics, "has no line of a run (docs/metrics_format.md)");
    } else if (damaged > 0) {
      faults_.push_back(
          cat(kRunMetrics, ": ", damaged, damaged == 1 ? " unreadable line" : " unreadable lines", " left out"));
    }
    return record;
  }

  // A run that still goes on, or that was killed, has no timeline; the page does without.
  std::vector<NamedTimeline> timelines() {
    if (fault_of(run_ / kRunTrace) == kNotThere) return {};
    const std::string trace = contents(kRunTrace);
    if (faulty_.contains(kRunTrace)) return {};
    try {
      return parse_chrome_trace(trace, kRunTrace);
    } catch (const ConfigError& error) {
      faults_.push_back(cat(error.what(), "; the timeline is left out"));
      return {};
    }
  }

  [[noreturn]] void refuse() const {
    std::vector<Problem> found;
    for (const std::string& fault : faults_) {
      found.push_back({"RUN", run_, cat("must be the folder of a run (train.out); ", fault), ""});
    }
    throw ConfigError(std::move(found));
  }

  fs::path run_;
  std::set<std::string> faulty_;  // files that say nothing
  std::vector<std::string> faults_;
};

// "run" of "runs/a/run/", and of "." within it.
std::string name_of(const fs::path& folder) {
  std::error_code gone;
  return folder.filename() == "." ? fs::current_path(gone).filename() : folder.filename();
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
  RunPage page = RunReader(folder).page();
  page.name = name_of(folder);
  if (out.empty()) out = folder / "report.html";
  write_file(out, run_page(page));
  for (const std::string& fault : page.faults) std::cerr << "braid: " << (folder / fault).string() << "\n";
  std::cout << out << "\n";
  return 0;
}

}  // namespace braid
