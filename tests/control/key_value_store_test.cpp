// A value set by one thread reaches another, whichever comes first.
#include "braid/control/key_value_store.h"

#include <gtest/gtest.h>

#include <thread>

namespace braid::control::key_value_store_test {
namespace {

TEST(LocalStore, a_value_is_waited_for) {
  LocalStore store;
  std::jthread setter([&] { store.set("address", "here"); });
  EXPECT_EQ(store.get("address", 60), "here");
}

TEST(LocalStore, a_value_that_nobody_sets_is_nothing) { EXPECT_EQ(LocalStore().get("address", 0), std::nullopt); }

}  // namespace
}  // namespace braid::control::key_value_store_test
