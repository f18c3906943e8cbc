// Links are never followed, a failed write leaves what was there, and pipes and devices are written as they are.
#include "braid/base/output_file.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braid/base/errors.h"
#include "braid/base/file_lock.h"
#include "braid/base/path_look.h"
#include "braid/base/process_start.h"
#include "braid/base/text.h"
#include "tests/support/scratch_folder.h"

namespace braid::output_file_test {
namespace {

class OutputFileTest : public ScratchFolder {
 protected:
  // The exit code of `body` in a child.
  template <class Body>
  static int in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

using Write = void (*)(const std::string&, const std::string&);
void write_ours(const std::string& path, const std::string& content) { write_file(path, content); }

TEST_F(OutputFileTest, ALinkIsReplacedAndWhatItLeadsToStays) {
  for (const Write write_it : {&write_ours, &write_named_file}) {
    write(path("precious"), "precious");
    std::filesystem::remove(path("out"));
    std::filesystem::create_symlink(path("precious"), path("out"));
    write_it(path("out"), "new");
    EXPECT_EQ(content(path("precious")), "precious");
    EXPECT_EQ(content(path("out")), "new");
    EXPECT_FALSE(is_link(path("out")));
  }
}

TEST_F(OutputFileTest, ALinkAtTheTemporaryNameIsNotFollowed) {
  write(path("precious"), "precious");
  std::filesystem::create_symlink(path("precious"), path("out.tmp"));
  write_file(path("out"), "new");
  EXPECT_EQ(content(path("precious")), "precious");
  EXPECT_EQ(content(path("out")), "new");
}

TEST_F(OutputFileTest, AFullDiskLeavesTheOldFileAndNoOther) {
  for (const Write write_it : {&write_ours, &write_named_file}) {
    write(path("out"), "old");
    const int code = in_child([&] {
      prepare_process();
      const rlimit limit{1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      try {
        write_it(path("out"), std::string(5000, 'x'));
      } catch (const IoError& error) {
        return error.path() == path("out") ? 3 : 4;
      }
      return 0;
    });
    EXPECT_EQ(code, 3);
    EXPECT_EQ(content(path("out")), "old");
    EXPECT_EQ(names_in(folder_), std::vector<std::string>{"out"});
  }
}

TEST_F(OutputFileTest, WhatTheUserKeepsUnderATemporaryNameStays) {
  write(path("out.tmp"), "mine");
  write_named_file(path("out"), "new");
  EXPECT_EQ(content(path("out.tmp")), "mine");
}

TEST_F(OutputFileTest, APipeThatTheUserNamesIsWritten) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_named_file(path("pipe"), "through");
  char bytes[16] = {};
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 7);
  EXPECT_STREQ(bytes, "through");
  ::close(reader);
  EXPECT_EQ(path_kind(path("pipe")), PathKind::Other);
  write_named_file("/dev/null", "nowhere");
  EXPECT_EQ(path_kind("/dev/null"), PathKind::Other);
}

TEST_F(OutputFileTest, StandardOutputThatIsAFileKeepsWhatItHas) {
  const int code = in_child([&] {
    const int out = ::open(path("log").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(out, STDOUT_FILENO);
    [[maybe_unused]] ssize_t ignored = ::write(STDOUT_FILENO, "before ", 7);
    write_named_file("/dev/stdout", "page");
    ignored = ::write(STDOUT_FILENO, " after", 6);
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(content(path("log")), "before page after");
}

TEST_F(OutputFileTest, AFileInSharedMemoryIsReplaced) {
  const std::string file = cat("/dev/shm/braid-output-file-", ::getpid());
  for (const char* text : {"a longer page", "page"}) write_named_file(file, text);
  EXPECT_EQ(content(file), "page");
  std::filesystem::remove(file);
}

TEST_F(OutputFileTest, AFileInAFolderWhereNoneCanBeMadeIsWrittenOver) {
  std::filesystem::create_directory(path("fixed"));
  write(path("fixed/out"), "a longer page");
  ASSERT_EQ(::chmod(path("fixed/out").c_str(), 0666), 0);
  ASSERT_EQ(::chmod(path("fixed").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  const int code = in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;
    try {
      write_named_file(path("fixed/out"), "page");
      prepare_process();
      const rlimit limit{1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      write_named_file(path("fixed/out"), std::string(5000, 'x'));
    } catch (const IoError& error) {
      return error.path() == path("fixed/out") ? 3 : 4;
    }
    return 0;
  });
  EXPECT_EQ(code, 3);
  EXPECT_EQ(content(path("fixed/out")), "page");
  ::chmod(path("fixed").c_str(), 0755);
}

TEST_F(OutputFileTest, AMountedFileIsWrittenOver) {
  write(path("out"), "a longer page");
  const int code = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(path("out").c_str(), path("out").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return 77;
    }
    write_named_file(path("out"), "page");
    return 0;
  });
  if (code == 77) GTEST_SKIP() << "only root mounts files";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(content(path("out")), "page");
}

TEST_F(OutputFileTest, WhatAKilledProcessLeftIsRemovedAndWhatALivingOneWritesIsNot) {
  write(path("out.braid-tmp-1"), "half");
  write(path("out.braid-tmp-2"), "half");
  const AdvisoryLock living(path("out.braid-tmp-2"), LockMode::Exclusive);
  write_named_file(path("out"), "page");
  EXPECT_EQ(names_in(folder_), (std::vector<std::string>{"out", "out.braid-tmp-2"}));
}

TEST_F(OutputFileTest, NothingIsAppendedThroughALinkOrToAPipe) {
  write(path("precious"), "precious");
  std::filesystem::create_symlink(path("precious"), path("link"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(open_to_append(path("link")), IoError);
  EXPECT_THROW(open_to_append(path("pipe")), IoError);
  EXPECT_EQ(content(path("precious")), "precious");
  for (const char* word : {"a", "b"}) std::fputs(word, open_to_append(path("file")).get());
  EXPECT_EQ(content(path("file")), "ab");
}

TEST_F(OutputFileTest, ClosedStandardDescriptorsAreOpenedOnNothing) {
  const int code = in_child([&] {
    for (const int standard : {0, 1, 2}) ::close(standard);
    prepare_process();
    const int next = ::open(path("file").c_str(), O_WRONLY | O_CREAT, 0600);
    [[maybe_unused]] const ssize_t ignored = ::write(STDOUT_FILENO, "console", 7);
    return next;
  });
  EXPECT_GT(code, 2);
  EXPECT_EQ(content(path("file")), "");
}

}  // namespace
}  // namespace braid::output_file_test
