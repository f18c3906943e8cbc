// Shared by benches with a driver: ranks that do together what its lines on standard input say, one line after
// another.
#pragma once

#include <barrier>
#include <cstdio>
#include <iostream>
#include <string>

namespace bench {

class Commands {
 public:
  explicit Commands(int num_ranks) : everyone_(num_ranks) {}

  // On every rank: rank 0 prints "ready"; then each line is `answer`ed by all ranks, which begin and end together,
  // until there are no more. What rank 0 prints goes out after each.
  template <class Answer>
  void serve(int rank, const Answer& answer) {
    const bool first = rank == 0;
    if (first) std::printf("ready\n"), std::fflush(stdout);
    while (true) {
      if (first && !std::getline(std::cin, line_)) line_ = "end";
      everyone_.arrive_and_wait();
      if (line_ == "end") break;
      answer(line_);
      if (first) std::fflush(stdout);
      everyone_.arrive_and_wait();
    }
  }

  std::barrier<>& everyone() { return everyone_; }

 private:
  std::barrier<> everyone_;
  std::string line_;
};

}  // namespace bench
