// Opening libraries, and the words when that fails.
#include <gtest/gtest.h>

#include "braid/device/cuda_tables.h"

namespace braid::device::loaded_library_test {
namespace {

TEST(LoadedLibrary, SaysWhyItIsNotOpen) {
  const LoadedLibrary none("/no/such/library.so", Symbols::Private);
  EXPECT_NE(none.problem().find("/no/such/library.so"), std::string::npos) << none.problem();
  EXPECT_EQ(none.symbol("anything"), nullptr);
}

TEST(LoadedLibrary, FindsWhatItExports) {
  const LoadedLibrary fake(BRAID_FAKE_CUDA, Symbols::Private);
  EXPECT_EQ(fake.problem(), "");
  EXPECT_NE(fake.symbol("braid_cuda_table"), nullptr);
  EXPECT_EQ(fake.symbol("no_such_symbol"), nullptr);
}

TEST(LoadedLibrary, KnowsWhereLoadedLibrariesAre) {
  EXPECT_NE(folder_of_loaded("libc.so.6").find('/'), std::string::npos);
  EXPECT_EQ(folder_of_loaded("libnot_loaded.so"), "");
  EXPECT_NE(folder_of_program().find('/'), std::string::npos);
}

}  // namespace
}  // namespace braid::device::loaded_library_test
