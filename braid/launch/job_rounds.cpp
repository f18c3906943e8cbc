// A node that is ahead is heard when this one has come to its round.
#include "braid/launch/job_rounds.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/launch/packed.h"

namespace braid {
namespace {

// The words of a round, behind its number.
std::string sealed(int round, std::vector<std::string> words) {
  words.insert(words.begin(), cat(round));
  return packed(words);
}

}  // namespace

JobRounds::JobRounds(JobControl& control, double progress_seconds)
    : control_(control), progress_seconds_(progress_seconds) {
  end();
}

void JobRounds::begin() {
  if (stand_in_) take(stand_in_->leave());
  stand_in_.reset();
  ++number_;
}

void JobRounds::end() {
  if (nodes().size() > 1) stand_in_.emplace(control_, progress_seconds_);
}

void JobRounds::say(std::vector<std::string> words) { control_.say(sealed(number_, std::move(words))); }

void JobRounds::take(std::vector<JobEvent> events) {
  progress_.resize(nodes().size());
  for (JobEvent& event : events) {
    if (event.kind == JobEvent::Kind::Progress) {
      progress_[static_cast<size_t>(event.node)] = std::move(event.bytes);
    } else if (event.kind == JobEvent::Kind::Lost) {
      if (lost_node_ >= 0) continue;
      lost_node_ = event.node;
      loss_ = cat("node ", event.node, " on ", nodes()[static_cast<size_t>(event.node)].host, " ", event.bytes);
    } else if (auto words = unpacked<std::vector<std::string>>(event.bytes); words && !words->empty()) {
      const int round = std::stoi(words->front());
      words->erase(words->begin());
      early_.push_back({round, {event.node, std::move(*words)}});
    }
  }
}

std::vector<Said> JobRounds::heard() {
  take(control_.advance());
  std::vector<Said> now;
  std::deque<std::pair<int, Said>> later;
  for (auto& [round, said] : early_) {
    if (round == number_) now.push_back(std::move(said));
    if (round > number_) later.push_back({round, std::move(said)});
  }
  early_ = std::move(later);
  return now;
}

std::vector<std::string> JobRounds::take_progress() {
  return std::exchange(progress_, std::vector<std::string>(nodes().size()));
}

std::vector<std::vector<std::string>> JobRounds::exchange(std::vector<std::string> words) {
  const double begun = now_seconds();
  begin();
  say(std::move(words));
  std::vector<std::vector<std::string>> all(nodes().size());
  for (size_t missing = nodes().size(); missing > 0;) {
    for (Said& said : heard()) {
      all[static_cast<size_t>(said.node)] = std::move(said.words);
      --missing;
    }
    if (missing == 0) break;
    if (lost_node_ >= 0) throw CommError({"the nodes' agreement", -1, now_seconds() - begun, loss_});
    std::vector<pollfd> watched;
    const int most = control_.watch(watched);
    poll(watched.data(), watched.size(), std::min(most, 1000));
  }
  end();
  return all;
}

}  // namespace braid
