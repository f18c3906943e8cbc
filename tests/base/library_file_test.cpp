// Files of shared libraries that are whole, cut short, or something else.
#include "braid/base/library_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "braid/base/text.h"
#include "tests/support/scratch_folder.h"

namespace braid::tests::library_file_test {
namespace {

using LibraryFile = ScratchFolder;

TEST_F(LibraryFile, one_that_is_cut_short_is_known) {
  const std::string path = this->path("library.so");
  std::filesystem::copy_file("/proc/self/exe", path);
  EXPECT_EQ(library_fault(path), "");
  const auto size = std::filesystem::file_size(path);
  for (const auto left : {size - 1, size / 2, decltype(size){100}}) {
    std::filesystem::resize_file(path, left);
    EXPECT_EQ(library_fault(path), cat("is cut short: it has ", left, " of ", size, " bytes"));
  }
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(library_fault(path), "is cut short: it has 10 bytes");
}

TEST_F(LibraryFile, one_that_is_no_library_is_known) {
  const std::string path = this->path("library.so");
  EXPECT_EQ(library_fault(path), "cannot be read");
  std::ofstream(path) << std::string(200, 'a');
  EXPECT_EQ(library_fault(path), "is no shared library of this machine");
}

}  // namespace
}  // namespace braid::tests::library_file_test
