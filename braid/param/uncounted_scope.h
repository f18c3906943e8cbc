// Keeps allocations beside a run, such as a measurement's, out of its memory account (memory_account.h).
#pragma once

namespace braid::param {

// While alive, what this thread allocates is counted to no rank. What it frees is taken off whom it was counted to.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;

 private:
  int rank_before_;
};

}  // namespace braid::param
