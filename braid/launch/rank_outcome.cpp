// An outcome is a list of texts. The first names its kind, a value or the type of an error; the others are its fields.
#include "braid/launch/rank_outcome.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/packed.h"
#include "braid/base/text.h"
#include "braid/launch/rank_frames.h"

namespace braid::launch {
namespace {

constexpr const char *kReturned = "value", *kPeerLost = "CommError", *kNoMemory = "MemoryError";
constexpr size_t kTextsOfProblem = 5;
constexpr size_t kWhyOfPeerLost = 4, kCallsOfPeerLost = 5;  // places of CommFailure::why and of the first call

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<MemoryShortage> shortage_of(const Texts& texts) {
  const auto rank = number_of<int>(texts[1]);
  const auto held = number_of<int64_t>(texts[2]), asked = number_of<int64_t>(texts[3]),
             limit = number_of<int64_t>(texts[4]);
  if (!rank || !held || !asked || !limit) return std::nullopt;
  return MemoryShortage{*rank, *held, *asked, *limit};
}

// Returns true if the texts have the form that texts_of_current() or returned() gives them.
bool is_outcome(const Texts& texts) {
  if (texts.empty()) return false;
  const std::string& type = texts[0];
  if (type == "ConfigError") return (texts.size() - 1) % kTextsOfProblem == 0;
  if (type == kPeerLost) {
    return texts.size() >= kCallsOfPeerLost && number_of<int>(texts[2]) && number_of<double>(texts[3]);
  }
  if (type == "IoError") return texts.size() == 4 && number_of<int64_t>(texts[2]);
  if (type == kNoMemory) return texts.size() == 6 && shortage_of(texts);
  const bool has_words = type == kReturned || type == "RunError" || type == "InternalError" || type == "error";
  return has_words && texts.size() == 2;
}

Texts texts_of_current() {
  try {
    throw;
  } catch (const ConfigError& error) {
    Texts texts{"ConfigError"};
    for (const Problem& problem : error.problems()) {
      texts.insert(texts.end(), {problem.key, problem.value, problem.rule, problem.nearest, problem.place});
    }
    return texts;
  } catch (const CommError& error) {
    const CommFailure& failure = error.failure();
    Texts texts{kPeerLost, failure.op, cat(failure.rank), exact(failure.elapsed_seconds), failure.why};
    texts.insert(texts.end(), failure.calls.begin(), failure.calls.end());
    return texts;
  } catch (const IoError& error) {
    return {"IoError", error.path(), cat(error.offset()), error.why()};
  } catch (const MemoryError& error) {
    const MemoryShortage& shortage = error.shortage();
    return {
        kNoMemory,   cat(shortage.rank), cat(shortage.held_bytes), cat(shortage.asked_bytes), cat(shortage.limit_bytes),
        error.what()};
  } catch (const RunError& error) {
    return {"RunError", error.what()};
  } catch (const std::bad_alloc&) {
    return {"RunError", "there is not enough memory"};
  } catch (const InternalError& error) {
    return {"InternalError", error.what()};
  } catch (const c10::Error& error) {
    return {"error", error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {"error", error.what()};
  } catch (...) {
    return {"error", "threw something that is no std::exception"};
  }
}

CommFailure failure_of(const Texts& texts) {
  return {texts[1],
          *number_of<int>(texts[2]),
          *number_of<double>(texts[3]),
          texts[kWhyOfPeerLost],
          {texts.begin() + kCallsOfPeerLost, texts.end()}};
}

// Returns true for a CommError of a rank that waited in a call of a communicator.
bool has_calls(const std::string& bytes) {
  const auto texts = unpacked<Texts>(bytes);
  return texts && is_outcome(*texts) && texts->front() == kPeerLost && texts->size() > kCallsOfPeerLost;
}

[[noreturn]] void throw_config_error(const Texts& texts) {
  std::vector<Problem> problems;
  for (size_t i = 1; i < texts.size(); i += kTextsOfProblem) {
    problems.push_back({texts[i], texts[i + 1], texts[i + 2], texts[i + 3], texts[i + 4]});
  }
  throw ConfigError(std::move(problems));
}

}  // namespace

std::string RankOutcome::returned(std::string value) { return packed(Texts{kReturned, std::move(value)}); }

std::string RankOutcome::thrown() { return packed(texts_of_current()); }

std::string RankOutcome::text_of_thrown() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

bool RankOutcome::complete(const std::string& bytes) {
  const auto texts = unpacked<Texts>(bytes);
  return texts && is_outcome(*texts);
}

bool RankOutcome::is_own_error(const std::string& bytes) {
  const auto texts = unpacked<Texts>(bytes);
  return texts && is_outcome(*texts) && texts->front() != kReturned && texts->front() != kPeerLost;
}

std::string RankOutcome::with_note(const std::string& bytes, const std::string& note) {
  auto texts = unpacked<Texts>(bytes);
  check(texts && is_outcome(*texts), "only a whole outcome takes a note");
  const std::string& type = texts->front();
  if (note.empty() || type == kReturned) return bytes;
  if (type == "ConfigError") {
    texts->insert(texts->end(), {"", "", note, "", ""});
  } else {
    (type == kPeerLost ? texts->at(kWhyOfPeerLost) : texts->back()) += "; " + note;
  }
  return packed(*texts);
}

std::string RankOutcome::value(const std::string& bytes) {
  const auto read = unpacked<Texts>(bytes);
  check(read && is_outcome(*read), "only a whole outcome can be read");
  const Texts& texts = *read;
  const std::string& type = texts[0];
  if (type == kReturned) return texts[1];
  if (type == "ConfigError") throw_config_error(texts);
  if (type == kPeerLost) throw CommError(failure_of(texts));
  if (type == "IoError") throw IoError(texts[1], *number_of<int64_t>(texts[2]), texts[3]);
  if (type == kNoMemory) throw MemoryError(texts[5], *shortage_of(texts));
  if (type == "RunError") throw RunError(texts[1]);
  if (type == "InternalError") throw InternalError(texts[1]);
  throw std::runtime_error(texts[1]);
}

void throw_error_of(const FailedLaunch& launch, const std::vector<std::string>& outcomes) {
  const auto& [what, failure, elapsed_seconds, left_behind] = launch;
  const auto said_by = [&](int rank) { return rank >= 0 ? outcomes.at(static_cast<size_t>(rank)) : ""; };
  const auto raise = [&](const std::string& outcome) {
    if (RankOutcome::complete(outcome)) RankOutcome::value(RankOutcome::with_note(outcome, left_behind));
  };
  const std::string reported = said_by(failure.reporter);
  // A failure by a closed connection may name no rank. Then any rank without an outcome may have died, but a rank that
  // is left behind has not.
  const bool peer_died = failure.rank >= 0
                             ? !RankOutcome::complete(said_by(failure.rank))
                             : left_behind.empty() && !std::ranges::all_of(outcomes, RankOutcome::complete);
  if (failure.reporter >= 0 && !peer_died && !RankOutcome::is_own_error(reported)) {
    const auto own = std::ranges::find_if(outcomes, RankOutcome::is_own_error);
    if (own != outcomes.end()) raise(*own);
  }
  raise(reported);
  CommFailure thrown{what, failure.rank, elapsed_seconds, failure.why};
  if (const auto woken = std::ranges::find_if(outcomes, has_calls); woken != outcomes.end()) {
    const CommFailure theirs = failure_of(*unpacked<Texts>(*woken));
    thrown.why += cat("; rank ", woken - outcomes.begin(), " was in ", theirs.op);
    thrown.calls = theirs.calls;
  }
  if (!left_behind.empty()) thrown.why += "; " + left_behind;
  throw CommError(std::move(thrown));
}

}  // namespace braid::launch
