// Files come out as they were put in, whatever the pieces; names are never taken from others.
#include "braid/base/file_system.h"

#include <sys/mount.h>

#include <vector>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::file_system_test {
namespace {

class FileSystemTest : public ScratchFolder {
 protected:
  void expect_comes_back(const std::string& name, size_t bytes, size_t piece) {
    std::string wanted(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) wanted[i] = static_cast<char>(i * 2654435761u >> 13);
    const auto file = files_.create(path(name));
    for (size_t at = 0; at < bytes; at += piece) {
      file->append(std::as_bytes(std::span(wanted).subspan(at, std::min(piece, bytes - at))));
    }
    file->sync();
    file->close();
    EXPECT_TRUE(content(path(name)) == wanted) << bytes << " in pieces of " << piece;
    std::filesystem::remove(path(name));
  }
  std::string error_of_rename(const std::string& from, const std::string& to) {
    try {
      files_.rename(path(from), path(to));
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  }

  PosixFileSystem files_;
};

constexpr size_t kBlock = 4 << 20;  // of what is written at once

TEST_F(FileSystemTest, FilesOfAnyLengthInPiecesOfAnyLengthComeBack) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock + 12345}) {
    expect_comes_back("file", bytes, kBlock / 3 + 7);
  }
  expect_comes_back("file", 2 * kBlock + 5, 3 * kBlock);
  expect_comes_back("file", 5000, 1);
}

TEST_F(FileSystemTest, WritingGoesOnAfterASync) {
  const std::string first(kBlock + 100, 'a'), second(kBlock + 10, 'b');
  const auto file = files_.create(path("file"));
  for (const std::string* part : {&first, &second}) {
    file->append(std::as_bytes(std::span(*part)));
    file->sync();
    EXPECT_EQ(std::filesystem::file_size(path("file")), part == &first ? first.size() : first.size() + second.size());
  }
  file->append(std::as_bytes(std::span(first)));
  file->close();
  EXPECT_TRUE(content(path("file")) == first + second + first);
}

TEST_F(FileSystemTest, FileSystemsWithoutDirectWritesWillDo) {
  std::filesystem::create_directory(path("memory"));
  if (::mount("none", path("memory").c_str(), "tmpfs", 0, "size=32m") != 0) GTEST_SKIP() << "mounting needs privileges";
  expect_comes_back("memory/file", 2 * kBlock + 1, kBlock / 2 + 1);
  EXPECT_EQ(::umount(path("memory").c_str()), 0);
}

TEST_F(FileSystemTest, RenamingTakesNothingsName) {
  write(path("a"), "a");
  write(path("b"), "b");
  std::filesystem::create_directory(path("empty"));
  EXPECT_EQ(error_of_rename("a", "b"), path("b") + ": cannot rename to: File exists");
  EXPECT_EQ(error_of_rename("a", "empty"), path("empty") + ": cannot rename to: File exists");
  EXPECT_EQ(error_of_rename("c", "d"), path("c") + ": cannot rename to " + path("d") + ": No such file or directory");
  EXPECT_EQ(error_of_rename("a", "c"), "no error");
  EXPECT_EQ(content(path("c")) + content(path("b")), "ab");
  files_.create_directories(path("x/y/z/"));
  files_.create_directories(path("x/y"));
  EXPECT_TRUE(std::filesystem::is_directory(path("x/y/z")));
  EXPECT_THROW(files_.create_directories(path("b/y")), IoError);
  EXPECT_GT(files_.free_bytes(path("x")), 0);
}

}  // namespace
}  // namespace braid::file_system_test
