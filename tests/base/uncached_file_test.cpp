// Every byte as the cached file gives it, wherever it lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "braid/base/direct_files.h"
#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"

namespace braid::uncached_file_test {
namespace {

class UncachedFileTest : public ScratchFolder {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < 3'000'001; ++i) bytes_.push_back(static_cast<char>(i * i >> 7));
    write(path("file"), bytes_);
  }
  std::string read(const UncachedFile& file, int64_t offset, size_t count) const {
    const AlignedBytes memory = aligned_bytes(count);
    file.read(offset, {memory.get(), count});
    return {reinterpret_cast<const char*>(memory.get()), count};
  }
  std::string bytes_;
};

TEST_F(UncachedFileTest, GivesEveryByte) {
  const CheckedFile checked(path("file"));
  const UncachedFile file(checked);
  for (const int64_t offset : {0, 4096, 1 << 20, 1, 511, 2'999'000}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{4097}, size_t{1} << 20, size_t{2'000'001}}) {
      const size_t there = std::min(count, bytes_.size() - static_cast<size_t>(offset));
      EXPECT_TRUE(read(file, offset, there) == bytes_.substr(static_cast<size_t>(offset), there)) << offset << count;
    }
  }
}

TEST_F(UncachedFileTest, NamesTheByteThatIsNotThere) {
  const CheckedFile checked(path("file"));
  const UncachedFile file(checked);
  try {
    read(file, 2'998'272, 4096);
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), path("file"));
    EXPECT_EQ(error.offset(), 3'000'001);
  }
}

// The name may be another file's by now: what was checked is what is read.
TEST_F(UncachedFileTest, ReadsTheFileThatWasChecked) {
  const CheckedFile checked(path("file"));
  std::filesystem::rename(path("file"), path("moved"));
  write(path("file"), std::string(bytes_.size(), 'x'));
  EXPECT_TRUE(read(UncachedFile(checked), 0, bytes_.size()) == bytes_);
  std::filesystem::remove(path("file"));
  EXPECT_TRUE(read(UncachedFile(checked), 0, bytes_.size()) == bytes_);
}

}  // namespace
}  // namespace braid::uncached_file_test
