// The suites that every backend passes. Their tests are compiled once, from tests/comm/conformance/; a program that
// links them instantiates each suite for its backends.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "braid/comm/communicator.h"

namespace braid::comm::tests {

struct Backend {
  const char* name;                                                            // as in the names of tests
  void (*run)(int num_ranks, const std::function<void(Communicator&)>& body);  // throws the first failure
  bool is_dear = false;        // worlds are dear to start, and are looked at in fewer sizes
  int num_programs = 300;      // random programs of a run of the tests
  int64_t more = 0;            // floats that it does not hold on their way; for Failures
  bool buffers_sends = false;  // a rank that has left still takes the messages of its peers
};

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) { return out << backend.name; }
inline std::string name_of(const testing::TestParamInfo<Backend>& backend) { return backend.param.name; }

class Collectives : public testing::TestWithParam<Backend> {};
class Groups : public testing::TestWithParam<Backend> {};
class RankChannels : public testing::TestWithParam<Backend> {};
class Programs : public testing::TestWithParam<Backend> {};  // random ones
class NamedCalls : public testing::TestWithParam<Backend> {};
class Failures : public testing::TestWithParam<Backend> {};  // of ranks on their own

}  // namespace braid::comm::tests
