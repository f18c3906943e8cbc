// A file that a user has named: its content, or a problem under what named it.
#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::named_file_test {
namespace {

class Named : public ScratchFolder {
 protected:
  Named() { ::signal(SIGPIPE, SIG_IGN); }  // of a writer that nobody reads to its end
};

TEST_F(Named, IsReadThroughLinks) {
  write(path("table"), "0F0");
  std::filesystem::create_symlink("table", path("link"));
  EXPECT_EQ(named_file_content({"--schedule", "file:link", path("link")}), "0F0");
}

TEST_F(Named, APipeIsReadToItsEndOrItsLimit) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{200'000}, size_t{300'000}}) {
    std::thread writer([&] { std::ofstream(path("pipe")) << std::string(bytes, 'x'); });
    try {
      EXPECT_EQ(named_content(path("pipe"), 250'000), std::string(bytes, 'x'));
      EXPECT_LE(bytes, 250'000u);
    } catch (const IoError& error) {
      EXPECT_STREQ(error.why().c_str(), "is an endless pipe; at most 250000 bytes are read");
      EXPECT_GT(bytes, 250'000u);
    }
    writer.join();
  }
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
