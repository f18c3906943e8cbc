// The kinds of paths, and that the system's refusals are errors of the world.
#include "braid/base/path_look.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::path_look_test {
namespace {

class PathLook : public ScratchFolder {
 protected:
  PathLook() {
    write(path("file"), "text");
    std::filesystem::create_directory(path("folder"));
    std::filesystem::create_symlink("file", path("link"));
    std::filesystem::create_symlink("loop", path("loop"));
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  }

  template <class Call>
  static std::string why(const Call& call) {
    try {
      call();
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(PathLook, TellsKinds) {
  EXPECT_EQ(path_kind(path("file")), PathKind::File);
  EXPECT_EQ(path_kind(path("link")), PathKind::File);
  EXPECT_EQ(path_kind(path("folder")), PathKind::Folder);
  EXPECT_EQ(path_kind(path("pipe")), PathKind::Other);
  EXPECT_EQ(path_kind("/dev/zero"), PathKind::Other);
  EXPECT_EQ(path_kind(path("gone")), PathKind::Nothing);
  EXPECT_EQ(path_kind(path("file/below")), PathKind::Nothing);
  EXPECT_TRUE(is_link(path("link")));
  EXPECT_FALSE(is_link(path("file")));
  EXPECT_FALSE(is_link(path("gone")));
}

TEST_F(PathLook, WhatTheSystemRefusesIsAnErrorOfTheWorld) {
  const std::string loop = path("loop"), long_name = path(std::string(300, 'n'));
  EXPECT_EQ(why([&] { path_kind(loop); }), loop + ": cannot be looked at: Too many levels of symbolic links");
  EXPECT_EQ(why([&] { path_kind(long_name); }), long_name + ": cannot be looked at: File name too long");
  EXPECT_EQ(why([&] { names_in(path("gone")); }), path("gone") + ": cannot be looked at: No such file or directory");
  EXPECT_EQ(why([&] { names_in(path("file")); }), path("file") + ": cannot be looked at: Not a directory");
  EXPECT_NE(why([&] { file_bytes(loop); }), "no error");
  EXPECT_NE(why([&] { change_time(loop); }), "no error");
  EXPECT_NE(why([&] { resolved_path(loop + "/x"); }), "no error");
}

TEST_F(PathLook, NamesAndSizes) {
  EXPECT_EQ(names_in(folder_), (std::vector<std::string>{"file", "folder", "link", "loop", "pipe"}));
  EXPECT_EQ(file_bytes(path("link")), 4);
  EXPECT_EQ(resolved_path(path("folder/../link")), resolved_path(path("file")));
  EXPECT_EQ(resolved_path("not/there"), std::filesystem::current_path() / "not/there");
}

TEST_F(PathLook, OnlyRegularFilesAreRead) {
  EXPECT_EQ(file_content(path("link"), 100), "text");
  EXPECT_EQ(why([&] { CheckedFile file(path("link")); }), path("link") + ": is a link, not a regular file");
  EXPECT_EQ(why([] { file_content("/dev/zero", 100); }), "/dev/zero: is a device, not a regular file");
  EXPECT_EQ(why([&] { file_content(path("pipe"), 100); }), path("pipe") + ": is a pipe, not a regular file");
  EXPECT_EQ(why([&] { file_content(folder_, 100); }), folder_ + ": is a folder, not a regular file");
  EXPECT_EQ(why([&] { file_content(path("file"), 3); }), path("file") + ": at byte 3: has 4 bytes; at most 3 are read");

  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(why([&] { file_content(path("socket"), 100); }), path("socket") + ": is a socket, not a regular file");
  ::close(listener);
}

}  // namespace
}  // namespace braid::path_look_test
