// One owner at a time, in one process and over processes; nothing stays when the owner is gone.
#include "braid/base/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::file_lock_test {
namespace {

using FileLockTest = ScratchFolder;

TEST_F(FileLockTest, HasOneOwnerWhoSaysWhoItIs) {
  std::optional<FileLock> first(std::in_place, path("lock"), "the first");
  EXPECT_EQ(first->state(), FileLock::State::Ours);
  const FileLock second(path("lock"), "the second");
  EXPECT_EQ(second.state(), FileLock::State::Theirs);
  EXPECT_EQ(second.owner(), "the first");
  first.reset();
  EXPECT_EQ(content(path("lock")), "") << "who reads it next is not told of an owner that is gone";
  EXPECT_EQ(FileLock(path("lock"), "the third").state(), FileLock::State::Ours);
}

// A pipe tells that the child has it; the kill cannot be caught.
TEST_F(FileLockTest, IsFreeWhenItsOwnerIsKilled) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(path("lock"), "the child");
    const char told = lock.state() == FileLock::State::Ours ? 'y' : 'n';
    if (::write(pipe[1], &told, 1) == 1) ::pause();
    ::_exit(1);
  }
  char told = 0;
  ASSERT_EQ(::read(pipe[0], &told, 1), 1);
  EXPECT_EQ(told, 'y');
  EXPECT_EQ(FileLock(path("lock"), "the parent").owner(), "the child");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(FileLock(path("lock"), "the parent").state(), FileLock::State::Ours);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

// The one that is open for `path`; -1 when none is.
int descriptor_of(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path) return std::stoi(entry.path().filename());
  }
  return -1;
}

// Programs that are started while it is held do not take it along; a copy of the process does, until it is given back.
TEST_F(FileLockTest, IsNotInherited) {
  std::optional<FileLock> lock(std::in_place, path("lock"), "the parent");
  const int descriptor = descriptor_of(path("lock"));
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char end = 0;
    ::close(pipe[1]);
    ::_exit(::read(pipe[0], &end, 1) == 0 ? 0 : 1);
  }
  lock.reset();
  EXPECT_EQ(FileLock(path("lock"), "the next").state(), FileLock::State::Ours);
  ::close(pipe[1]);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
}

TEST_F(FileLockTest, SaysWhenTheFileSystemHasNone) {
  const auto none = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  const FileLock lock(path("lock"), "somebody", none);
  EXPECT_EQ(lock.state(), FileLock::State::NoLocks);
  EXPECT_EQ(lock.why(), "No locks available");
}

TEST_F(FileLockTest, AFailedRequestIsAnError) {
  const auto broken = [](int, int) {
    errno = EIO;
    return -1;
  };
  try {
    const FileLock lock(path("lock"), "somebody", broken);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), cat(path("lock"), ": cannot lock: Input/output error").c_str());
  }
}

TEST_F(FileLockTest, IsNotGrantedOnAFileThatWasRemovedMeanwhile) {
  static std::string lock_file;
  static std::optional<FileLock> next_owner;
  lock_file = path("lock");
  const auto removed_once = [](int descriptor, int operation) {
    const bool is_first = !next_owner && (operation & LOCK_EX) != 0;
    if (is_first) {  // the owner before removes the file, and another process is quicker to make it anew
      std::filesystem::remove(lock_file);
      next_owner.emplace(lock_file, "the quicker");
    }
    return ::flock(descriptor, operation);
  };
  {
    const FileLock lock(lock_file, "the slower", removed_once);
    EXPECT_EQ(lock.state(), FileLock::State::Theirs);
    EXPECT_EQ(lock.owner(), "the quicker");
    lock.remove();
  }
  EXPECT_TRUE(std::filesystem::exists(lock_file)) << "it is another's";
  next_owner->remove();
  EXPECT_FALSE(std::filesystem::exists(lock_file));
  next_owner.reset();
}

TEST_F(FileLockTest, IsARegularFile) {
  std::filesystem::create_symlink("nowhere", path("link"));
  std::filesystem::create_directory(path("folder"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const auto& [name, kind] : {std::pair("link", "a link"), {"folder", "a folder"}, {"pipe", "a pipe or device"}}) {
    try {
      const FileLock lock(path(name), "somebody");
      ADD_FAILURE() << name;
    } catch (const IoError& error) {
      EXPECT_EQ(error.what(), cat(path(name), ": is ", kind, ", not a regular file"));
    }
  }
}

TEST_F(FileLockTest, FaultsNameThePath) {
  try {
    const FileLock lock(path("nowhere/lock"), "somebody");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), path("nowhere/lock"));
  }
}

}  // namespace
}  // namespace braid::file_lock_test
