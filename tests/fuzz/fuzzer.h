// Runs a target on inputs it knows, then on changed ones; those that reach something new are changed further.
// It prints nothing and ends nothing: what a sanitizer finds ends the process, and who is asked then is main.cpp.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

class Fuzzer {
 public:
  // `target` outlives this.
  Fuzzer(const Target& target, uint64_t seed) : target_(target), mutator_(seed, target.words) {}

  // Runs the input and keeps it where it reaches something new. Throws what the target should not have thrown, as
  // std::runtime_error.
  void run(const std::string& input);
  // Changes kept inputs for so long. At least one was kept.
  void search(double seconds);

  const std::vector<std::string>& kept() const { return kept_; }
  size_t num_runs() const { return num_runs_; }
  size_t num_edges() const { return num_edges_; }  // as Edges::take_new() counts them

 private:
  const Target& target_;
  Mutator mutator_;
  std::vector<std::string> kept_;
  size_t num_runs_ = 0, num_edges_ = 0;
};

// The input being run, for those that report a process's end.
const std::string& input_at_hand();

}  // namespace braid::fuzz
