// A disk that fails: faults of the file itself, and a queue that returns what a failing system returns.
#include "braid/disk/scratch_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "braid/base/text.h"
#include "tests/disk/disk_folder.h"

namespace braid::scratch_file_test {
namespace {

using namespace braid::disk;

constexpr int64_t kBytes = 1 << 20;

// Changes the results of some transfers. A transfer that is cut short transfers that much only.
class FaultyQueue final : public TransferQueue {
 public:
  explicit FaultyQueue(std::unique_ptr<TransferQueue> queue) : queue_(std::move(queue)) {}
  ~FaultyQueue() override { EXPECT_EQ(under_way_, 0); }

  // The n-th transfer, from 0, reports this error or so many bytes.
  void fail(int n, int fault) { results_[n] = -fault; }
  void report(int n, int64_t bytes) { results_[n] = bytes; }
  void cut(int n, size_t bytes) { cuts_[n] = bytes; }
  void see(int n, double seconds) { seen_[n] = seconds; }  // as the end of the transfer
  int submitted() const { return submitted_; }
  int64_t last_offset() const { return last_offset_; }
  int under_way() const { return under_way_; }

  void submit(const Transfer& transfer) override {
    Transfer changed = transfer;
    if (const auto cut = cuts_.find(submitted_); cut != cuts_.end()) changed.bytes = cut->second;
    numbers_[transfer.id] = submitted_++;
    ++under_way_;
    last_offset_ = transfer.offset;
    queue_->submit(changed);
  }
  Completion next() override {
    Completion completion = queue_->next();
    --under_way_;
    const auto result = results_.find(numbers_.at(completion.id));
    if (result != results_.end()) completion.result = result->second;
    const auto seen = seen_.find(numbers_.at(completion.id));
    if (seen != seen_.end()) completion.ended = seen->second;
    return completion;
  }

 private:
  std::unique_ptr<TransferQueue> queue_;
  std::map<int, int64_t> results_;
  std::map<int, size_t> cuts_;
  std::map<int, double> seen_;
  std::map<uint64_t, int> numbers_;
  int submitted_ = 0, under_way_ = 0;
  int64_t last_offset_ = -1;
};

class ScratchFileTest : public EveryEngine {
 protected:
  void SetUp() override {
    EveryEngine::SetUp();
    if (IsSkipped()) return;
    std::string why;
    auto queue =
        std::make_unique<FaultyQueue>(GetParam() == Engine::IoUring ? make_uring_queue(8, why) : make_thread_queue(4));
    auto file = std::make_unique<UnnamedFile>(folder_, kBytes, "memory.paths");
    queue_ = queue.get();
    file_ = file.get();
    disk_ =
        std::make_unique<ScratchFile>(std::move(file), std::move(queue), ScratchFile::Settings{8, Checksums::On, {}});
  }

  // Returns the message of the RunError that `wait` throws.
  static std::string error_of(const std::function<void()>& wait) {
    try {
      wait();
    } catch (const RunError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_of_wait(Ticket ticket) {
    return error_of([&] { disk_->wait(ticket); });
  }
  std::string message(const std::string& what) const { return cat("scratch file in ", folder_, ": cannot ", what); }

  // Changes a bit of the file, past the Disk.
  void flip_bit(int64_t offset) {
    const int fd = ::open(cat("/proc/self/fd/", file_->descriptor()).c_str(), O_RDWR | O_CLOEXEC);
    char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, offset), 1);
    byte = static_cast<char>(byte ^ 4);
    ASSERT_EQ(::pwrite(fd, &byte, 1, offset), 1);
    ASSERT_EQ(::fsync(fd), 0);
    ::close(fd);
  }

  FaultyQueue* queue_ = nullptr;
  UnnamedFile* file_ = nullptr;
  AlignedBuffer out_ = filled(kBytes, 1), in_{kBytes};
  std::unique_ptr<ScratchFile> disk_;  // last: it waits for operations on the buffers
};
INSTANTIATE_TEST_SUITE_P(Engines, ScratchFileTest, testing::Values(Engine::IoUring, Engine::Threads), engine_name);

TEST_P(ScratchFileTest, FailedWriteIsAnErrorOfEveryWait) {
  queue_->fail(0, EIO);
  const Ticket ticket = disk_->write(8192, out_.first(65536));
  const std::string expected = message("write 65536 bytes at offset 8192: Input/output error");
  EXPECT_EQ(error_of_wait(ticket), expected);
  EXPECT_EQ(error_of_wait(disk_->read(0, in_.first(4096))), expected);
  EXPECT_EQ(error_of([&] { disk_->wait_all(); }), expected);
  EXPECT_EQ(queue_->submitted(), 1);
  EXPECT_EQ(disk_->bytes_written(), 0);
}

// The queue may know the time long before anybody waits.
TEST_P(ScratchFileTest, RecordsWhenTheLastTransferOfAnOperationWasSeenToEnd) {
  disk_->set_recording(Recording::On);
  queue_->cut(0, 8192);
  queue_->see(0, 7);
  queue_->see(1, 9);
  disk_->wait(disk_->write(0, out_.first(65536)));
  ASSERT_EQ(queue_->submitted(), 2);
  ASSERT_EQ(disk_->recorded().size(), 1u);
  EXPECT_EQ(disk_->recorded()[0].bytes, 65536);
  EXPECT_EQ(disk_->recorded()[0].end, 9);
}

TEST_P(ScratchFileTest, FullDiskIsAnError) {
  queue_->fail(0, ENOSPC);
  EXPECT_EQ(error_of_wait(disk_->write(0, out_.first(4096))),
            message("write 4096 bytes at offset 0: No space left on device"));
}

TEST_P(ScratchFileTest, FailedReadIsAnErrorOnceNothingIsUnderWay) {
  disk_->wait(disk_->write(0, out_.bytes()));
  queue_->fail(1, EIO);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 8; ++i) tickets.push_back(disk_->read(i * 65536, in_.bytes().subspan(i * 65536, 65536)));
  EXPECT_EQ(error_of_wait(tickets[0]), message("read 65536 bytes at offset 0: Input/output error"));
  EXPECT_EQ(queue_->under_way(), 0);
}

TEST_P(ScratchFileTest, ErrorOfAWriteThatWasNotWaitedForIsThrownByTheNextWait) {
  queue_->fail(0, EIO);
  disk_->write(0, out_.first(4096));
  disk_->drain();
  EXPECT_EQ(error_of_wait({}), message("write 4096 bytes at offset 0: Input/output error"));
}

TEST_P(ScratchFileTest, ShortTransfersContinueAtABlock) {
  queue_->cut(0, 12288);
  queue_->cut(1, 4096);
  disk_->wait(disk_->write(0, out_.bytes()));
  EXPECT_EQ(queue_->submitted(), 3);
  queue_->cut(3, 4096 * 5);
  disk_->wait(disk_->read(0, in_.bytes()));
  EXPECT_EQ(queue_->submitted(), 5);
  EXPECT_TRUE(are_equal(in_, out_));
}

TEST_P(ScratchFileTest, TransferThatEndsInABlockContinuesAtItsBeginning) {
  queue_->report(0, 5000);
  disk_->wait(disk_->write(0, out_.first(16384)));
  EXPECT_EQ(queue_->last_offset(), 4096);
  EXPECT_EQ(queue_->submitted(), 2);
}

TEST_P(ScratchFileTest, DestructorWaitsForOperations) {
  for (int i = 0; i < 8; ++i) disk_->write(i * 65536, out_.first(65536));
  EXPECT_GT(queue_->under_way(), 0);
  disk_.reset();  // the queue sees that no transfer is under way
}

TEST_P(ScratchFileTest, InterruptedTransfersAreRepeated) {
  queue_->fail(0, EINTR);
  queue_->fail(1, EAGAIN);
  disk_->wait(disk_->write(0, out_.bytes()));
  EXPECT_EQ(queue_->submitted(), 3);
}

TEST_P(ScratchFileTest, WriteThatMakesNoProgressIsAnError) {
  queue_->cut(0, 4096);
  queue_->fail(1, 0);
  EXPECT_EQ(error_of_wait(disk_->write(0, out_.first(8192))),
            message("write 8192 bytes at offset 0: only 4096 bytes of them were taken"));
}

TEST_P(ScratchFileTest, FileThatEndsEarlyIsAnError) {
  disk_->wait(disk_->write(0, out_.bytes()));
  ASSERT_EQ(::ftruncate(file_->descriptor(), 3 * 4096 + 100), 0);
  EXPECT_EQ(error_of_wait(disk_->read(4096, in_.first(16384))),
            message("read 16384 bytes at offset 4096: the file ends after 8292 bytes of them"));
}

TEST_P(ScratchFileTest, FlippedBitIsAnErrorOfEachReadOfItsBlock) {
  disk_->write(0, out_.first(65536));
  disk_->wait(disk_->write(65536, out_.first(65536)));
  flip_bit(65536 + 7777);
  disk_->wait(disk_->read(0, in_.first(65536)));
  EXPECT_EQ(error_of_wait(disk_->read(0, in_.first(131072))),
            message("read 131072 bytes at offset 0: the 4096 bytes at offset 69632 are not those that were written: "
                    "their checksum differs"));
}

TEST_P(ScratchFileTest, FlippedBitIsAnErrorOfAReadThatIsSmallerThanTheWrite) {
  disk_->wait(disk_->write(0, out_.first(65536)));
  flip_bit(4096 + 7);
  disk_->wait(disk_->read(8192, in_.first(4096)));
  EXPECT_EQ(error_of_wait(disk_->read(4096, in_.first(8192))),
            message("read 8192 bytes at offset 4096: the 4096 bytes at offset 4096 are not those that were written: "
                    "their checksum differs"));
}

TEST_P(ScratchFileTest, OverwrittenChunkHasTheNewChecksum) {
  disk_->write(0, out_.first(65536));
  disk_->write(16384, out_.first(16384));  // in the middle of the former
  disk_->wait(disk_->read(0, in_.first(65536)));
  disk_->wait(disk_->read(16384, in_.first(16384)));
  flip_bit(16384);
  EXPECT_NE(error_of_wait(disk_->read(0, in_.bytes())), "no error");
}

}  // namespace
}  // namespace braid::scratch_file_test
