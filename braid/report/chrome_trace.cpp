// The writer and the reader of Chrome traces. An event carries its action in `args`, so the reader need not guess it.
#include "braid/report/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"
#include "braid/base/word.h"
#include "braid/report/disk_rows.h"
#include "braid/schedule/program_text.h"

namespace braid::report {
namespace {

using Json = nlohmann::json;

struct Look {
  const char* category;
  const char* colour;  // name in chrome://tracing's palette; Perfetto derives colours from names
};

Look look(Op op) {
  switch (op) {
    case Op::Forward:
      return {"compute", "thread_state_running"};
    case Op::FullBackward:
      return {"compute", "rail_response"};
    case Op::InputGrad:
      return {"compute", "rail_idle"};
    case Op::WeightGrad:
      return {"compute", "rail_animation"};
    case Op::ReduceGrad:
      return {"reduction", "yellow"};
    case Op::Recompute:
      return {"compute", "thread_state_runnable"};
    case Op::Update:
      return {"optimizer", "olive"};
    default:
      return {"transfer", "grey"};
  }
}

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

// Rounds to whole nanoseconds. If begin and duration were rounded separately, a span could overlap the next one.
double nanoseconds(double seconds) { return std::round(1e9 * seconds); }
std::string microseconds(double nanoseconds) { return fixed(nanoseconds / 1e3, 3); }

// The events of one process, with the metadata of their threads.
class Process {
 public:
  Process(const NamedTimeline& named, int id) : named_(named), id_(id), origin_(named.timeline.extent().begin) {}

  std::vector<std::string> events() {
    describe("process_name", 0, quoted(named_.name));
    events_.push_back(
        cat(R"({"ph":"M","name":"process_sort_index","pid":)", id_, R"(,"args":{"sort_index":)", id_, "}}"));
    for (size_t rank = 0; rank < named_.timeline.ranks.size(); ++rank) row(static_cast<int>(rank));
    return std::move(events_);
  }

 private:
  int num_ranks() const { return static_cast<int>(named_.timeline.ranks.size()); }

  void describe(const char* what, int thread, const std::string& name) {
    events_.push_back(cat(R"({"ph":"M","name":")", what, R"(","pid":)", id_, R"(,"tid":)", thread,
                          R"(,"args":{"name":)", name, "}}"));
  }

  // Writes a rank's spans. Thread `rank` has spans that follow each other; each further thread has spans that overlap
  // with spans of the threads before it.
  void row(int rank) {
    std::vector<double> free_at;
    const auto& spans = named_.timeline.ranks[static_cast<size_t>(rank)];
    for (size_t i = 0; i < spans.size(); ++i) {
      if (schedule::second_of_pair(spans, i)) continue;
      const bool overtaken = i + 1 < spans.size() && spans[i + 1].begin < spans[i].end;
      size_t lane = !schedule::computes(spans[i].action.op) && overtaken ? 1 : 0;
      while (lane < free_at.size() && free_at[lane] > spans[i].begin) ++lane;
      while (free_at.size() <= lane) {
        const int number = static_cast<int>(free_at.size());
        describe("thread_name", thread(rank, number), quoted(cat("rank ", rank, number > 0 ? " transfers" : "")));
        free_at.push_back(-std::numeric_limits<double>::infinity());
      }
      free_at[lane] = spans[i].end;
      const bool pair = i + 1 < spans.size() && schedule::second_of_pair(spans, i + 1);
      event(spans[i], thread(rank, static_cast<int>(lane)), pair ? &spans[i + 1].action : nullptr);
    }
    disk(rank, static_cast<int>(free_at.size()));
  }

  // Writes a rank's disk transfers in the lanes from `lane` on, one for each direction of each content.
  void disk(int rank, int lane) {
    std::map<std::pair<schedule::DiskDirection, schedule::DiskContent>, int> threads;
    for (const schedule::DiskTransfer& bar : merged(named_.timeline.disk_of(static_cast<size_t>(rank)), 0)) {
      const auto [at, is_new] = threads.try_emplace({bar.direction, bar.content}, thread(rank, lane));
      const std::string name = cat(word(bar.direction), " ", word(bar.content));
      if (is_new) describe("thread_name", thread(rank, lane++), quoted(cat("rank ", rank, " ", name)));
      const double begin = nanoseconds(bar.begin - origin_), end = nanoseconds(bar.end - origin_);
      events_.push_back(cat(R"({"ph":"X","name":")", name, R"(","cat":"disk","pid":)", id_, R"(,"tid":)", at->second,
                            R"(,"ts":)", microseconds(begin), R"(,"dur":)", microseconds(end - begin),
                            R"(,"args":{"disk":")", word(bar.direction), R"(","content":")", word(bar.content),
                            R"(","bytes":)", bar.bytes, "}}"));
    }
  }

  int thread(int rank, int lane) const { return lane * num_ranks() + rank; }

  // Writes one span, or a fused pair as one event that names both actions.
  void event(const schedule::Span& span, int thread, const Action* partner) {
    const Action& action = span.action;
    Look seen = look(action.op);
    std::string name = named(action);
    Program actions = {action};
    if (partner) {
      name += " + " + named(*partner);
      seen.colour = "thread_state_iowait";
      actions.push_back(*partner);
    }
    const double begin = nanoseconds(span.begin - origin_), end = nanoseconds(span.end - origin_);
    events_.push_back(cat(R"({"ph":"X","name":")", name, R"(","cat":")", seen.category, R"(","cname":")", seen.colour,
                          R"(","pid":)", id_, R"(,"tid":)", thread, R"(,"ts":)", microseconds(begin), R"(,"dur":)",
                          microseconds(end - begin), R"(,"args":{"action":")", schedule::word_at(actions, 0),
                          R"(","stage":)", action.stage, R"(,"microbatch":)", action.micro, "}}"));
  }

  static std::string named(const Action& action) {
    return action.micro < 0 ? std::string(words_of(action.op)) : cat(words_of(action.op), " ", action.micro);
  }

  const NamedTimeline& named_;
  const int id_;
  const double origin_;
  std::vector<std::string> events_;
};

// The state of parse_chrome_trace.
class Reading {
 public:
  void add(const Json& event) {
    const std::string phase = event.at("ph"), name = event.at("name");
    const auto process = event.at("pid").get<size_t>();
    if (process >= kMostProcesses) throw Json::other_error::create(500, "too many processes", nullptr);
    if (process >= timelines_.size()) timelines_.resize(process + 1);
    if (phase == "M" && name == "process_name") timelines_[process].name = event.at("args").at("name");
    if (phase == "M" && name == "thread_name") {
      ranks_[{process, event.at("tid")}] = rank_of(event.at("args").at("name"));
    }
    if (phase != "X") return;
    auto& rows = timelines_[process].timeline.ranks;
    const size_t rank = ranks_.at({process, event.at("tid")});
    if (rank >= rows.size()) rows.resize(rank + 1);
    const double begin = event.at("ts").get<double>() / 1e6;
    const double end = begin + event.at("dur").get<double>() / 1e6;
    if (event.at("args").contains("disk")) {
      auto& disk = timelines_[process].timeline.disk;
      if (rank >= disk.size()) disk.resize(rank + 1);
      return disk[rank].push_back(disk_transfer(event.at("args"), begin, end));
    }
    const std::string word = event.at("args").at("action");
    for (const Action& action : schedule::parse_word(word)) rows[rank].push_back({action, begin, end});
  }

  std::vector<NamedTimeline> timelines() { return std::move(timelines_); }

 private:
  static constexpr size_t kMostProcesses = 64, kMostRanks = 1 << 20;

  static schedule::DiskTransfer disk_transfer(const Json& args, double begin, double end) {
    const auto direction = value_of<schedule::DiskDirection>(args.at("disk").get<std::string>());
    const auto content = value_of<schedule::DiskContent>(args.at("content").get<std::string>());
    return {direction.value(), content.value(), args.at("bytes").get<int64_t>(), begin, end};
  }

  // Returns 3 for "rank 3", "rank 3 transfers" and "rank 3 read optimizer".
  static size_t rank_of(const std::string& thread) {
    const size_t rank = std::stoul(thread.substr(5));
    if (rank >= kMostRanks) throw Json::other_error::create(500, "too many ranks", nullptr);
    return rank;
  }

  std::vector<NamedTimeline> timelines_;
  std::map<std::pair<size_t, int>, size_t> ranks_;
};

[[noreturn]] void refuse_trace(const std::string& place, const std::string& why) {
  throw ConfigError({{"", "", cat("must be a trace that braid train wrote; ", why), "", place}});
}

}  // namespace

std::string chrome_trace(const std::vector<NamedTimeline>& timelines) {
  std::vector<std::string> events;
  for (size_t i = 0; i < timelines.size(); ++i) {
    for (auto& event : Process(timelines[i], static_cast<int>(i)).events()) events.push_back(std::move(event));
  }
  return cat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", joined(events, ",\n"), "\n]}\n");
}

std::vector<NamedTimeline> parse_chrome_trace(const std::string& trace, const std::string& origin) {
  Json whole;
  const JsonFault fault = read_json(trace, whole);
  if (fault.line > 0) refuse_trace(cat(origin, ":", fault.line), fault.why);
  const auto events = whole.find("traceEvents");
  if (events == whole.end() || !events->is_array()) refuse_trace(origin, "it has no list of \"traceEvents\"");
  Reading reading;
  int64_t number = 0;
  for (const auto& event : *events) {
    ++number;
    try {
      reading.add(event);
    } catch (const std::exception&) {  // any exception means that braid did not write the event
      refuse_trace(origin, cat("event ", number, " is not one that braid writes"));
    }
  }
  return reading.timelines();
}

}  // namespace braid::report
