// Folders that are refused, and systems that refuse the fast ways.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <vector>

#include "braid/base/text.h"
#include "braid/disk/bus_error.h"
#include "braid/disk/folder_problems.h"
#include "braid/disk/mapping.h"
#include "braid/disk/scratch_file.h"
#include "tests/disk/disk_folder.h"
#include "tests/disk/refused_call.h"

namespace braid::open_test {
namespace {

using namespace braid::disk;

class OpenTest : public DiskFolder {
 protected:
  Options options(int64_t bytes) const { return {{folder_}, bytes}; }

  // Ends the process, with 0 if a new disk returns what it took. Prints its notes.
  [[noreturn]] void use_disk_and_exit() const {
    const auto disk = open(options(1 << 20));
    for (const std::string& note : disk->notes()) std::fprintf(stderr, "%s\n", note.c_str());
    AlignedBuffer out = filled(1 << 20, 1), in(1 << 20);
    disk->write(0, out.bytes());
    disk->wait(disk->read(0, in.bytes()));
    std::_Exit(are_equal(in, out) ? 0 : 1);
  }
  // Ends the process; prints the problems.
  [[noreturn]] void fail_to_open_and_exit() const {
    try {
      open(options(1 << 20));
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(2);
    }
    std::_Exit(0);
  }
};

std::string refusal(const Options& options) {
  try {
    open(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_F(OpenTest, AllProblemsAreInOneMessage) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "text";
  const std::string text = refusal({{folder_ + "/missing", file, folder_}, int64_t{3} << 60});
  EXPECT_NE(text.find(cat("memory.paths = ", folder_, "/missing: must exist: No such file or directory\n")), text.npos);
  EXPECT_NE(text.find(cat("memory.paths = ", file, ": must be a folder\n")), text.npos);
  EXPECT_NE(text.find(cat(folder_, ": needs 1048576.0 TiB of free space; it has ")), text.npos) << text;
  EXPECT_EQ(refusal({{}, 1}), "memory.paths: must name a folder");
}

TEST_F(OpenTest, FoldersOfOneFileSystemShareItsSpace) {
  std::filesystem::create_directories(folder_ + "/a");
  const Options both{{folder_, folder_ + "/a"}, int64_t{2} << 60};
  EXPECT_EQ(bytes_beside(folder_, both), int64_t{2} << 60);
  EXPECT_EQ(bytes_beside("/dev/shm", both), 0);
  EXPECT_NE(refusal(both).find(cat(folder_, "/a: needs 2097152.0 TiB of free space; it has ")), std::string::npos);
}

// A file that has become empty is to a mapping what a disk is that has failed.
TEST_F(OpenTest, AFailedDiskEndsAProcessThatReadsItsMappingWithASentence) {
  const auto read_and_exit = [&] {
    end_with_message_on_bus_error();
    UnnamedFile* const file = new UnnamedFile(folder_, 1 << 20, "memory.paths");
    ScratchFile disk(std::unique_ptr<UnnamedFile>(file), make_thread_queue(1), {});
    const Mapping mapping(disk, 1 << 20);
    if (::ftruncate(file->descriptor(), 0) != 0) std::_Exit(1);
    std::_Exit(static_cast<int>(const_cast<volatile std::byte*>(mapping.bytes().data())[5000]));
  };
  EXPECT_EXIT(read_and_exit(), testing::ExitedWithCode(3),
              "^braid: a disk with scratch files \\(memory.paths, or train.out\\) failed while ");
  const auto raise_elsewhere = [] {
    end_with_message_on_bus_error();
    ::raise(SIGBUS);
    std::_Exit(0);
  };
  EXPECT_EXIT(raise_elsewhere(), testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(OpenTest, FolderInMemoryIsRefused) {
  EXPECT_EQ(refusal({{"/dev/shm"}, 1}), "memory.paths = /dev/shm: must be on a disk; this folder is in memory (tmpfs)");
}

TEST_F(OpenTest, FolderThatTakesNoFilesIsRefused) {
  EXPECT_NE(refusal({{"/proc"}, 1}).find("memory.paths = /proc: "), std::string::npos);
}

using OpenDeathTest = OpenTest;

TEST_F(OpenDeathTest, FolderOfAnotherUserIsRefused) {
  if (::getuid() != 0) GTEST_SKIP() << "takes root, to become another user";
  EXPECT_EXIT(
      {
        if (::setuid(65534) != 0) std::_Exit(1);
        fail_to_open_and_exit();
      },
      testing::ExitedWithCode(2), "must be writable: Permission denied");
}

TEST_F(OpenDeathTest, RefusedIoUringIsReplacedByThreads) {
  std::string why;
  if (!make_uring_queue(1, why)) GTEST_SKIP() << why;
  for (const auto& [fault, text] : {std::pair(EPERM, "Operation not permitted"),
                                    {ENOSYS, "Function not implemented"},
                                    {ENOMEM, "Cannot allocate memory"}}) {
    EXPECT_EXIT((refuse({SYS_io_uring_setup, static_cast<unsigned>(fault)}), use_disk_and_exit()),
                testing::ExitedWithCode(0),
                cat("^io_uring is refused \\(", text, "\\); threads read and write the scratch files\n$"));
  }
}

TEST_F(OpenDeathTest, RefusedDirectIoIsReplacedByThePageCache) {
  EXPECT_EXIT((refuse({SYS_fcntl, EINVAL, 2, O_DIRECT}), use_disk_and_exit()), testing::ExitedWithCode(0),
              "no direct I/O \\(Invalid argument\\); bytes go through the page cache\n");
  const auto refuse_first_write_and_exit = [&] {
    refuse({SYS_pwrite64, EINVAL});
    const UnnamedFile file(folder_, 1 << 20, "memory.paths");
    std::fprintf(stderr, "%s, %d", file.cache_note().c_str(), ::fcntl(file.descriptor(), F_GETFL) & O_DIRECT);
    std::_Exit(0);
  };
  EXPECT_EXIT(refuse_first_write_and_exit(), testing::ExitedWithCode(0),
              "no direct I/O \\(Invalid argument\\); bytes go through the page cache, 0$");
}

// Returns how many pages of the file are in the page cache.
int64_t cached_pages(const UnnamedFile& file) {
  const auto bytes = static_cast<size_t>(file.bytes());
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  std::vector<unsigned char> pages(bytes / static_cast<size_t>(::getpagesize()));
  const bool known = memory != MAP_FAILED && ::mincore(memory, bytes, pages.data()) == 0;
  return known ? std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }) : -1;
}

TEST_F(OpenDeathTest, PageCacheKeepsNoBytesThatWereRead) {
  const auto write_read_and_exit = [&] {
    refuse({SYS_fcntl, EINVAL, 2, O_DIRECT});
    auto owned = std::make_unique<UnnamedFile>(folder_, 1 << 20, "memory.paths");
    const UnnamedFile& file = *owned;
    AlignedBuffer buffer = filled(1 << 20, 1);
    ScratchFile disk(std::move(owned), make_thread_queue(1), {});
    disk.wait(disk.write(0, buffer.bytes()));
    if (::fsync(file.descriptor()) != 0) std::_Exit(1);
    disk.wait(disk.read(0, buffer.bytes()));
    std::fprintf(stderr, "%d pages", static_cast<int>(cached_pages(file)));
    std::_Exit(0);
  };
  EXPECT_EXIT(write_read_and_exit(), testing::ExitedWithCode(0), "^0 pages$");
}

TEST_F(OpenDeathTest, FileSystemWithoutUnnamedFilesHoldsAnUnlinkedOne) {
  EXPECT_EXIT(
      {
        refuse({SYS_openat, EOPNOTSUPP, 2, O_TMPFILE & ~O_DIRECTORY});
        const auto disk = open(options(1 << 20));
        std::_Exit(is_empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(OpenDeathTest, SpaceIsReserved) {
  EXPECT_EXIT((refuse({SYS_fallocate, ENOSPC}), fail_to_open_and_exit()), testing::ExitedWithCode(2),
              "cannot reserve 1.0 MiB for a scratch file: No space left on device");
  EXPECT_EXIT((refuse({SYS_fallocate, EOPNOTSUPP}), use_disk_and_exit()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace braid::open_test
