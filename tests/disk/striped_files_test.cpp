// Stripes over three folders.
#include "braid/disk/striped_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "braid/base/text.h"
#include "braid/disk/scratch_file.h"
#include "tests/disk/disk_folder.h"

namespace braid::striped_files_test {
namespace {

using namespace braid::disk;

constexpr int64_t kStripe = StripedFiles::kStripeBytes;

class StripedFilesTest : public DiskFolder {
 protected:
  StripedFilesTest() {
    for (int i = 0; i < 3; ++i) {
      auto file = std::make_unique<UnnamedFile>(folder_, StripedFiles::bytes_of_each(kBytes, 3), "memory.paths");
      files_.push_back(file.get());
      auto disk = std::make_unique<ScratchFile>(std::move(file), make_thread_queue(2),
                                                ScratchFile::Settings{4, Checksums::On, {cat("note ", i / 2)}});
      parts_.push_back(disk.get());
      disks_.push_back(std::move(disk));
    }
  }

  static constexpr int64_t kBytes = 5 * kStripe;
  std::vector<UnnamedFile*> files_;
  std::vector<Disk*> parts_;
  std::vector<std::unique_ptr<Disk>> disks_;
};

TEST_F(StripedFilesTest, StripesAreInTheFoldersInTurn) {
  EXPECT_EQ(StripedFiles::bytes_of_each(kBytes, 3), 2 * kStripe);
  AlignedBuffer out = filled(kBytes, 1), in(kBytes), stripe(kStripe);
  StripedFiles striped(std::move(disks_));
  striped.write(0, out.bytes());
  // From the middle of one stripe to the middle of another.
  const auto middle = static_cast<size_t>(kStripe / 2), rest = static_cast<size_t>(kBytes - kStripe);
  striped.wait(striped.read(kStripe / 2, in.bytes().subspan(middle, rest)));
  EXPECT_EQ(std::memcmp(in.data() + middle, out.data() + middle, rest), 0);
  striped.wait_all();
  EXPECT_EQ(striped.bytes_written(), kBytes);
  EXPECT_EQ(striped.bytes_read(), kBytes - kStripe);
  EXPECT_EQ(striped.notes(), (std::vector<std::string>{"note 0", "note 1"}));
  for (int i = 0; i < 5; ++i) {
    Disk& part = *parts_[static_cast<size_t>(i % 3)];
    part.wait(part.read(i / 3 * kStripe, stripe.bytes()));
    EXPECT_EQ(std::memcmp(stripe.data(), out.data() + i * kStripe, stripe.size()), 0) << i;
  }
}

TEST_F(StripedFilesTest, PartsAreRecordedAtTheirPlacesInTheSpace) {
  AlignedBuffer out = filled(kBytes, 1);
  StripedFiles striped(std::move(disks_));
  striped.set_recording(Recording::On);
  striped.wait(striped.write(kStripe / 2, out.first(4 * kStripe)));
  std::vector<Moved> record = striped.recorded();
  EXPECT_TRUE(std::ranges::is_sorted(record, {}, &Moved::end));
  std::ranges::sort(record, {}, &Moved::offset);
  ASSERT_EQ(record.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const Moved& part = record[static_cast<size_t>(i)];
    EXPECT_EQ(part.offset, i == 0 ? kStripe / 2 : i * kStripe);
    EXPECT_EQ(part.bytes, i == 0 || i == 4 ? kStripe / 2 : kStripe);
  }
}

TEST_F(StripedFilesTest, ErrorOfOneFolderIsAnErrorOfEveryWait) {
  AlignedBuffer out = filled(kBytes, 1), in(kBytes);
  StripedFiles striped(std::move(disks_));
  striped.wait(striped.write(0, out.bytes()));
  ASSERT_EQ(::ftruncate(files_[1]->descriptor(), 0), 0);
  striped.wait(striped.read(0, in.first(kStripe)));
  const Ticket bad = striped.read(0, in.bytes());
  EXPECT_THROW(striped.wait(bad), RunError);
  EXPECT_THROW(striped.wait(bad), RunError);
  EXPECT_THROW(striped.wait_all(), RunError);
}

TEST_F(StripedFilesTest, OpenStripesOverFolders) {
  const std::string other = folder_ + "/other";
  std::filesystem::create_directory(other);
  AlignedBuffer out = filled(kBytes, 1), in(kBytes);
  const auto disk = open({{folder_, other}, kBytes, 8, Checksums::On});
  disk->wait(disk->write(0, out.bytes()));
  disk->wait(disk->read(0, in.bytes()));
  EXPECT_TRUE(are_equal(in, out));
}

}  // namespace
}  // namespace braid::striped_files_test
