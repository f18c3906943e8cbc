// The search.
#include "tests/fuzz/fuzzer.h"

#include <unistd.h>

#include <stdexcept>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/fuzz/edges.h"

namespace braid::fuzz {
namespace {

constexpr unsigned kMostSeconds = 20;  // of one input, then SIGALRM

std::string at_hand;  // reached from a sanitizer's callback, which is given nothing

}  // namespace

const std::string& input_at_hand() { return at_hand; }

void Fuzzer::run(const std::string& input) {
  at_hand = input;
  ::alarm(kMostSeconds);
  Edges::reset();
  try {
    target_.run(input);
  } catch (const ConfigError&) {
  } catch (const IoError&) {
  } catch (const std::exception& error) {
    throw std::runtime_error(cat("the ", target_.name, " reader threw what is no answer: ", error.what()));
  }
  const size_t found = Edges::take_new();
  ::alarm(0);
  ++num_runs_;
  num_edges_ += found;
  if (found > 0) kept_.push_back(input);
}

void Fuzzer::search(double seconds) {
  check(!kept_.empty(), "a search begins with inputs that reach something");
  const double end = now_seconds() + seconds;
  while (now_seconds() < end) {
    const std::string base = kept_[mutator_.draw(kept_.size())], other = kept_[mutator_.draw(kept_.size())];
    run(mutator_.changed(base, other));
  }
}

}  // namespace braid::fuzz
