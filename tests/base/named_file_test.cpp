// A file that a user has named: its content, or a problem under what named it.
#include "braid/base/named_file.h"

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::named_file_test {
namespace {

class Named : public ScratchFolder {};

TEST_F(Named, IsReadThroughLinks) {
  write(path("table"), "0F0");
  std::filesystem::create_symlink("table", path("link"));
  EXPECT_EQ(named_file_content({"--schedule", "file:link", path("link")}), "0F0");
}

TEST_F(Named, WhatCannotBeReadIsAProblemOfItsName) {
  std::ofstream(path("huge"));
  std::filesystem::resize_file(path("huge"), std::uintmax_t{1} << 40);  // of zeros that take no place
  for (const auto& [file, why] :
       {std::pair("nowhere", ": cannot open: No such file or directory"),
        {"", ": is a folder, not a regular file"},
        {"huge", ": at byte 268435456: has 1099511627776 bytes; at most 268435456 are read"}}) {
    try {
      named_file_content({"--schedule", "file:it", path(file)});
      ADD_FAILURE() << file;
    } catch (const ConfigError& error) {
      const Problem expected{"--schedule", "file:it", "cannot be read (" + path(file) + why + ")", ""};
      EXPECT_EQ(error.problems(), std::vector<Problem>{expected});
    }
  }
}

}  // namespace
}  // namespace braid::named_file_test
