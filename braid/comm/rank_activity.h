// A rank's current activity in words. Another process may read it at any time, also after the rank was killed: it lies
// in shared memory and holds no pointers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::comm {

// A text that one thread writes while others read: in words, each of them atomic, so that a reader sees a whole text or
// none.
template <size_t kBytes>
class SharedText {
 public:
  void write(std::string_view text);
  std::string read() const;

 private:
  static constexpr size_t kWords = kBytes / sizeof(uint64_t);
  std::atomic<uint32_t> turn_{0};  // odd while it is written
  std::atomic<uint64_t> words_[kWords] = {};
};

struct ActivitySnapshot {
  int64_t count = 0;           // activities begun so far
  std::string what, waits_in;  // "forward of microbatch 5 on stage 1"; an operation it is held up in, or nothing
  std::string aside;           // what another of its threads does, or nothing
  double seconds = 0;          // since either began
  double slowest_step = 0;     // seconds
  bool of_storage = false;     // it reads or writes files, or does something aside
  bool of_people = false;      // it tells what happens, to a terminal or pipe that may be paused

  // "recv activations of microbatch 5 from rank 2 of pipe, 0.4 s"; empty where nothing was begun.
  std::string text() const;
};

class RankActivity {
 public:
  // The rank's own thread. Ends what it did before.
  void begin(std::string_view what);
  void begin_storage(std::string_view what);
  void begin_telling(std::string_view what);
  void end_of_step(double seconds);
  // Any of its threads, around a wait that has turned out to be long; the last that began is shown.
  void begin_wait(std::string_view operation);
  void end_wait();
  // Any of its threads, for what it does beside the rank's own thread, such as connecting: like an activity of storage
  // until it ends.
  void begin_aside(std::string_view what);
  void end_aside();

  // Any thread of any process.
  ActivitySnapshot look() const;

 private:
  std::atomic<bool> writing_wait_{false}, writing_aside_{false};  // a thread of the rank
  std::atomic<bool> of_storage_{false}, of_people_{false};
  std::atomic<int64_t> count_{0};
  std::atomic<int> waits_{0}, asides_{0};
  std::atomic<double> since_{0}, slowest_step_{0};
  SharedText<128> what_, waits_in_, aside_;
};

// Something that a thread of a rank does aside, in one step after another; it ends with this object.
class BackgroundActivity {
 public:
  // Null: nobody looks.
  explicit BackgroundActivity(RankActivity* activity) : activity_(activity) {}
  ~BackgroundActivity() { end(); }
  BackgroundActivity(const BackgroundActivity&) = delete;
  BackgroundActivity& operator=(const BackgroundActivity&) = delete;

  void begin(std::string_view what) {
    end();
    if (activity_) activity_->begin_aside(what);
    begun_ = true;
  }

 private:
  void end() {
    if (activity_ && begun_) activity_->end_aside();
    begun_ = false;
  }

  RankActivity* const activity_;
  bool begun_ = false;
};

// A wait that tells of itself once it has turned out to be long.
class ReportedWait {
 public:
  static constexpr double kShort = 0.01;  // seconds; one that is no longer is not worth telling of

  // Null: nobody looks.
  explicit ReportedWait(RankActivity* activity) : activity_(activity) {}
  ~ReportedWait() {
    if (told_) activity_->end_wait();
  }
  ReportedWait(const ReportedWait&) = delete;

  // Before each sleep: how long it may be, of `left` seconds; `operation()` is what is waited for, in words.
  template <class Words>
  double nap(double left, const Words& operation) {
    if (!activity_) return left;
    if (!began_) {
      began_ = true;
      return left < kShort ? left : kShort;
    }
    if (!told_) activity_->begin_wait(operation());
    told_ = true;
    return left;
  }

 private:
  RankActivity* const activity_;
  bool began_ = false, told_ = false;
};

}  // namespace braid::comm
