// Tables that are changed by one move are noticed.
#include "braid/moves/faults.h"

#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/moves/drawn_traces.h"

namespace braid::moves::faults_test {
namespace {

// Forward and backward over three blocks, memory for two: chunks 0 and 1 stay between steps.
const Trace kTrace{{{10}, {10}, {10, Content::Gradients}}, {{{0}}, {{1}}, {{2}}, {{2}}, {{1}}, {{0}}}};

std::string first_fault(const Table& table, int64_t capacity = 20) {
  const std::vector<std::string> found = faults(kTrace, table, capacity);
  return found.empty() ? "" : found.front();
}

TEST(Faults, NameTheMove) {
  const Table table = plan(kTrace, {20});
  EXPECT_EQ(first_fault(table), "");
  EXPECT_EQ(first_fault(table, 19), "after use -1: 20 bytes exceed the capacity of 19");
  Table changed = table;
  changed.initial = {0};
  EXPECT_EQ(first_fault(changed), "use 1: chunk 1 is not in memory");
  changed = table;
  changed.loads[0].after = -1;
  EXPECT_EQ(first_fault(changed), "after use -1: 30 bytes exceed the capacity of 20");
  changed = table;
  changed.loads[0].before = 3;
  EXPECT_EQ(first_fault(changed), "use 2: chunk 2 may still be loading, for use 3");
  changed = table;
  changed.evictions[1].fate = Fate::Drop;
  EXPECT_EQ(first_fault(changed), "eviction of chunk 2 after use 3: only changed chunks are written");
  changed = table;
  changed.evictions[0].chunk = 2;
  EXPECT_EQ(first_fault(changed), "eviction of chunk 2 after use 0: it is not in memory");
  changed = table;
  changed.evictions.pop_back();
  EXPECT_EQ(first_fault(changed), "after use 3: 30 bytes exceed the capacity of 20");
  changed = table;
  changed.loads.push_back({1, 4, 6});
  EXPECT_EQ(first_fault(changed), "load of chunk 1 after use 4: it is in memory");
  changed = table;
  changed.evictions.push_back({0, 5});
  EXPECT_EQ(first_fault(changed), "the chunks in memory at the end are not those of the beginning");
}

TEST(Faults, NameTheUse) {
  const Table table = plan(kTrace, {20});
  Table changed = table;
  changed.loads[0].before = 1;
  EXPECT_EQ(first_fault(changed), "use 2: chunk 2 is loaded for use 1");
  changed = table;
  changed.evictions.insert(changed.evictions.begin() + 1, {2, 1, Fate::Write});
  EXPECT_EQ(first_fault(changed), "eviction of chunk 2 after use 1: it was not used since it was loaded");
  changed = table;
  changed.evictions.push_back({0, 6});
  EXPECT_EQ(first_fault(changed), "an eviction is after no use, or not in order");
  changed = table;
  changed.loads.push_back({2, 6, 8});
  EXPECT_EQ(first_fault(changed), "a load is after no use, or not in order");
}

TEST(Faults, LoadsBeginInTheirStep) {
  const Trace trace{{{10}, {10}}, {{{0}}, {{1}}}};
  Table table = plan(trace, {20, Policy::NextUse, StepEnd::Drop});
  EXPECT_EQ(table.loads, (std::vector<Load>{{0, -1, 0}, {1, -1, 1}}));
  table = {2, 2, {}, {{0, -1, 0}, {1, 0, 1}, {0, 0, 2}, {1, 2, 3}}, {{0, 0}, {1, 1}, {0, 2}, {1, 3}}};
  EXPECT_EQ(faults(trace, table, 20),
            std::vector<std::string>{"load of chunk 0 after use 0: use 2 is not in the step that follows"});
}

// Every move of drawn tables is left out once, and the first moves are doubled.
TEST(Faults, FindEachMoveThatIsLeftOut) {
  Dice dice(5);
  int num_changed = 0;
  for (int i = 0; i < 200; ++i) {
    const Trace trace = drawn_trace(dice, Sizes::Different);
    const int64_t capacity = least_capacity(trace) + dice.between(0, 4);
    const Table table = plan(trace, {capacity});
    for (size_t load = 0; load < table.loads.size(); ++load, ++num_changed) {
      Table changed = table;
      changed.loads.erase(changed.loads.begin() + static_cast<std::ptrdiff_t>(load));
      EXPECT_FALSE(faults(trace, changed, capacity).empty()) << i << ", load " << load;
      changed = table;
      changed.loads.insert(changed.loads.begin() + static_cast<std::ptrdiff_t>(load), table.loads[load]);
      EXPECT_FALSE(faults(trace, changed, capacity).empty()) << i << ", load " << load;
    }
    for (size_t eviction = 0; eviction < table.evictions.size(); ++eviction, ++num_changed) {
      Table changed = table;
      changed.evictions.erase(changed.evictions.begin() + static_cast<std::ptrdiff_t>(eviction));
      EXPECT_FALSE(faults(trace, changed, capacity).empty()) << i << ", eviction " << eviction;
    }
  }
  EXPECT_GT(num_changed, 500);
}

}  // namespace
}  // namespace braid::moves::faults_test
