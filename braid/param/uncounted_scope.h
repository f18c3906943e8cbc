// What is allocated beside a run, as by a measurement, and must not show up in its account (memory_account.h).
#pragma once

namespace braid {

// While alive, what this thread allocates is counted to no rank. What it frees is taken off whom it was counted to.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;

 private:
  int rank_before_;
};

}  // namespace braid
