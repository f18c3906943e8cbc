// Lines of steps that stay are kept byte for byte, undone ones are removed, and the file is never half written.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/report/metrics_file.h"
#include "tests/support/scratch_folder.h"

namespace braid::report::metrics_cut_test {
namespace {

class MetricsCut : public ScratchFolder {
 protected:
  CutLines cut(int64_t last_step) { return cut_metrics(path("metrics.jsonl"), last_step, files_); }
  std::string left() { return content(path("metrics.jsonl")); }

  PosixFileSystem files_;
};

constexpr const char* kUpToTwo =
    "{\"kind\":\"run\",\"first_step\":0}\n"
    "{\"kind\":\"step\",\"step\":1,  \"loss\":null}\n"
    "{\"kind\":\"peak\",\"flops_per_second\":1e11}\n"
    "{\"kind\":\"step\",\"step\":2}\n"
    "{\"kind\":\"checkpoint\",\"step\":2,\"directory\":\"run/step-2\"}\n"
    "{\"kind\":\"evaluation\",\"step\":2,\"validation_loss\":2.5}\n";

TEST_F(MetricsCut, TakesBackWhatCameAfterTheStep) {
  write(path("metrics.jsonl"), std::string(kUpToTwo) +
                                   "{\"kind\":\"step\",\"step\":3}\n"
                                   "{\"kind\":\"choice\",\"text\":\"made after step 3\"}\n"
                                   "{\"kind\":\"checkpoint\",\"step\":4}\n"
                                   "{\"kind\":\"run\",\"first_step\":4}\n"
                                   "{\"kind\":\"peak\",\"flops_per_second\":2e11}\n");
  EXPECT_EQ(cut(2), (CutLines{5, 0}));
  EXPECT_EQ(left(), kUpToTwo);
}

// A start that went back to an earlier step is history like the rest.
TEST_F(MetricsCut, KeepsAStartThatWasBehindTheStep) {
  const std::string back = "{\"kind\":\"run\",\"first_step\":1}\n{\"kind\":\"peak\"}\n{\"kind\":\"step\",\"step\":2}\n";
  write(path("metrics.jsonl"), kUpToTwo + std::string("{\"kind\":\"step\",\"step\":3}\n") + back);
  EXPECT_EQ(cut(2), (CutLines{1, 0}));
  EXPECT_EQ(left(), kUpToTwo + back);
}

TEST_F(MetricsCut, TakesOutLinesThatWereCutShort) {
  for (const std::string torn : {"{\"kind\":\"step\",\"st", "{\"kind\":\n", "\n"}) {
    write(path("metrics.jsonl"), kUpToTwo + torn);
    EXPECT_EQ(cut(2), (CutLines{0, 1})) << torn;
    EXPECT_EQ(left(), kUpToTwo);
  }
}

TEST_F(MetricsCut, TakesOutALineWithANul) {
  using namespace std::string_literals;
  write(path("metrics.jsonl"), kUpToTwo + "{\"kind\":\"step\",\"step\":2}\0{}\n"s);
  EXPECT_EQ(cut(2), (CutLines{0, 1}));
  EXPECT_EQ(left(), kUpToTwo);
}

TEST_F(MetricsCut, LeavesAFileAloneInWhichNothingGoes) {
  EXPECT_EQ(cut(2), CutLines()) << "there is none";
  write(path("metrics.jsonl"), kUpToTwo);
  const auto before = std::filesystem::last_write_time(path("metrics.jsonl"));
  EXPECT_EQ(cut(2), CutLines());
  EXPECT_EQ(std::filesystem::last_write_time(path("metrics.jsonl")), before);
}

TEST(CutLinesSentence, SaysWhyLinesWent) {
  EXPECT_EQ(sentence({}, 2), "");
  EXPECT_EQ(sentence({0, 1}, 2), "took 1 line out of metrics.jsonl: 1 unreadable");
  EXPECT_EQ(sentence({2, 1}, 4), "took 3 lines out of metrics.jsonl: 2 of steps after 4, 1 unreadable");
}

// The system's, until the call that a test wants to fail.
class FailingFiles final : public FileSystem {
 public:
  explicit FailingFiles(std::string call) : call_(std::move(call)) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override { return fail("create"), real_.create(path); }
  void create_directories(const std::string& path) override { real_.create_directories(path); }
  void sync_directory(const std::string& path) override { real_.sync_directory(path); }
  void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
  void replace(const std::string& from, const std::string& to) override { fail("replace"), real_.replace(from, to); }
  void remove_all(const std::string& path) override { real_.remove_all(path); }
  bool exists(const std::string& path) override { return real_.exists(path); }

 private:
  void fail(const std::string& call) const {
    if (call == call_) throw IoError(call, -1, "fails here");
  }
  std::string call_;
  PosixFileSystem real_;
};

TEST_F(MetricsCut, IsDoneWhollyOrNotAtAll) {
  const std::string whole = kUpToTwo + std::string("{\"kind\":\"step\",\"step\":3}\n");
  for (const char* call : {"create", "replace"}) {
    write(path("metrics.jsonl"), whole);
    FailingFiles failing(call);
    EXPECT_THROW(cut_metrics(path("metrics.jsonl"), 2, failing), IoError);
    EXPECT_EQ(left(), whole) << call;
    EXPECT_EQ(cut(2), (CutLines{1, 0})) << "whatever a cut that was stopped has left";
    EXPECT_EQ(left(), kUpToTwo);
  }
}

}  // namespace
}  // namespace braid::report::metrics_cut_test
