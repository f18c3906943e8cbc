// braid report: writes one HTML page from the readable files of a run's folder. It needs no LibTorch.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/model_drawing.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/run_page.h"
#include "braid/spec/parse.h"
#include "braid/spec/toml_document.h"

namespace braid::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostOfFile = int64_t{1}
                                << 28;      // bytes of a configuration or a trace; its tree is ten times as large
constexpr size_t kMostOfSentence = 20'000;  // bytes; sentences contain file names

// Reads the files of a run's folder. A missing or damaged file becomes a fault of the page.
class RunReader {
 public:
  explicit RunReader(fs::path run) : run_(std::move(run)) {}

  report::RunPage page() {
    if (path_kind(run_) != PathKind::Folder) {
      throw ConfigError({{"RUN", run_, "must be the folder of a run (train.out)", ""}});
    }
    report::RunPage page;
    page.config_toml = config();
    page.model_svg = picture(page.config_toml);
    page.record = record();
    if (faulty_.contains(kConfigName) && faulty_.contains(kMetricsName)) refuse();
    page.timelines = timelines();
    page.faults = std::move(faults_);
    return page;
  }

 private:
  std::string place(const char* file) const { return run_ / file; }

  void fault(const char* file, const std::string& what) {
    faulty_.insert(file);
    faults_.push_back(what);
  }

  enum class Absence { Fault, Fine };

  // Calls `read` with the file's path, and returns true if that succeeds. A file that cannot be read is a fault of the
  // page. With Absence::Fault, so is a missing file.
  template <class Read>
  bool take(const char* file, Absence absence, const Read& read) {
    const std::string path = place(file);
    try {
      if (path_kind(path) != PathKind::Nothing) {
        read(path);
        return true;
      }
      if (absence == Absence::Fault) fault(file, path + " is missing");
    } catch (const IoError& error) {
      fault(file, error.what());
    }
    return false;
  }

  std::optional<std::string> contents(const char* file, Absence absence = Absence::Fault) {
    std::optional<std::string> text;
    take(file, absence, [&](const std::string& path) { text = file_content(path, kMostOfFile); });
    return text;
  }

  std::string config() {
    const std::string toml = contents(kConfigName).value_or("");
    if (toml.empty() && !faulty_.contains(kConfigName)) fault(kConfigName, place(kConfigName) + " is empty");
    for (const Problem& problem : spec::toml_document(toml, place(kConfigName)).problems) {
      faults_.push_back(cat(text(problem), "; it is shown as it is"));
    }
    return toml;
  }

  // Returns the model's picture; "" if the configuration is that of another version, or names no vocabulary.
  static std::string picture(const std::string& toml) {
    try {
      const RunSpec run =
          spec::parse_run(toml, kConfigName, {}, spec::ParseOptions(spec::any_hosts(spec::Purpose::Plan)));
      return run.model.vocab > 0 ? model_svg(listing_of(run)) : "";
    } catch (const ConfigError&) {
      return "";
    }
  }

  report::RunRecord record() {
    report::RunRecord record;
    const auto read = [&](const std::string& path) { record = report::read_run_record(path); };
    if (!take(kMetricsName, Absence::Fault, read)) return {};
    const int64_t damaged = record.num_damaged_lines;
    if (record.first_steps.empty() && record.steps.empty()) {
      fault(kMetricsName, place(kMetricsName) + " has no line of a run (docs/metrics_format.md)");
    } else if (damaged > 0) {
      faults_.push_back(cat(place(kMetricsName), ": ", counted(damaged, "unreadable line"), " left out"));
    }
    return record;
  }

  // Returns the timelines; none if the run has not ended yet or was killed. The page then leaves them out.
  std::vector<report::NamedTimeline> timelines() {
    const std::optional<std::string> trace = contents(kTraceName, Absence::Fine);
    if (!trace) return {};
    try {
      return report::parse_chrome_trace(*trace, place(kTraceName));
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
  std::set<std::string> faulty_;  // names of files without usable content
  std::vector<std::string> faults_;
};

// Returns the folder's own name: "run" for "runs/a/run", also if it is given as "." from inside, or as ".." from a
// folder in it.
std::string name_of(const fs::path& folder) {
  const fs::path name = folder.filename();
  return name == "." || name == ".." ? fs::path(resolved_path(folder)).filename() : name;
}

// Throws ConfigError if `out` would replace a file of the run that is no HTML page: the page is made from these files.
void refuse_file_of_run(const std::string& out, const fs::path& run) {
  if (path_kind(out) != PathKind::File) return;
  const fs::path place = resolved_path(out);
  if (!place.string().starts_with(resolved_path(run) + "/") || place.extension() == ".html") return;
  throw ConfigError({{"--out", out, "must not replace a file of the run", ""}});
}

}  // namespace

int report_command(const Words& words) {
  CLI::App app(
      "Writes a page about a run: curves, timeline, memory, configuration. One HTML file, nothing from outside.",
      "braid report");
  std::string run, out;
  app.add_option("RUN", run, "the run's folder (train.out)")->required();
  app.add_option("--out", out, "the file to write; RUN/report.html when not given")->check(output_name());
  if (const auto code = parse_words(app, words)) return *code;

  fs::path folder = fs::path(run).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!out.empty()) refuse_file_of_run(out, folder);
  report::RunPage page = RunReader(folder).page();
  page.name = name_of(folder);
  const std::string text = report::run_page(page);
  if (out.empty()) {
    out = folder / kReportName;
    write_file(out, text);
  } else {
    write_named_file(out, text);
  }
  for (const std::string& fault : page.faults) std::cerr << "braid: " << printable(fault, kMostOfSentence) << "\n";
  if (!is_written_in_place(out)) std::cout << printable(out, kMostOfSentence) << "\n";
  return 0;
}

}  // namespace braid::cli
