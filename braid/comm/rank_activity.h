// A description of a rank's current activity. It lies in shared memory and holds no pointers: another process may read
// it at any time, also after the rank was killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::comm {

// A text that one thread writes while others read. It is stored in atomic words; a reader gets a whole text or none.
template <size_t kBytes>
class SharedText {
 public:
  void write(std::string_view text);
  std::string read() const;

 private:
  static constexpr size_t kWords = kBytes / sizeof(uint64_t);
  std::atomic<uint32_t> turn_{0};  // odd during a write
  std::atomic<uint64_t> words_[kWords] = {};
};

struct ActivitySnapshot {
  int64_t count = 0;           // number of activities begun so far
  std::string what, waits_in;  // "forward of microbatch 5 on stage 1"; the operation that it waits for, or empty
  std::string aside;           // activity of a background thread, or empty
  double seconds = 0;          // seconds since the rank's own thread began its activity
  double slowest_step = 0;     // duration of the slowest step, in seconds
  bool of_storage = false;     // true while it reads or writes files, or while a background thread has an activity
  bool of_people = false;      // true while it prints to a terminal or pipe, which may be paused
  bool serves = false;         // true while it waits for requests of other ranks and has none to answer

  // Returns "recv activations of microbatch 5 from rank 2 of pipe, 0.4 s"; empty if no activity was begun.
  std::string text() const;
};

class RankActivity {
 public:
  // Called by the rank's own thread. Each begin ends the activity before it.
  void begin(std::string_view what);
  void begin_storage(std::string_view what);
  void begin_telling(std::string_view what);
  void end_of_step(double seconds);
  // Called by the rank's own thread after a step: `account` says what the rank holds in memory.
  void holds(std::string_view account) { account_.write(account); }
  // Called by any thread of the rank, around a wait that has turned out to be long. One of several concurrent waits is
  // shown, usually the last that began.
  void begin_wait(std::string_view operation);
  void end_wait();
  // Called by a server around the time in which its threads answer `requests`, "requests of workers". The rank waits
  // while none of them answers one.
  void begin_serving(std::string_view requests);
  void end_serving();
  // Called by any thread of a server around each answer, which is an activity.
  void begin_answer();
  void end_answer() { --answers_; }
  // Called by any thread of the rank, for work in the background, such as connecting. Until it ends, the rank counts as
  // one that reads or writes files.
  void begin_aside(std::string_view what);
  void end_aside();

  // Called by a rank whose loss the others survive (roster.h): from now on the world does not fail if its process dies.
  void allow_loss() { allows_loss_ = true; }
  bool allows_loss() const { return allows_loss_; }

  // Return the current activity, and the last account of memory, empty before the first. Any thread of any process may
  // call them.
  ActivitySnapshot look() const;
  std::string held() const { return account_.read(); }

 private:
  std::atomic<bool> writing_wait_{false}, writing_aside_{false};  // a thread of the rank is writing the text
  std::atomic<bool> of_storage_{false}, of_people_{false}, serves_{false}, allows_loss_{false};
  std::atomic<int64_t> count_{0};
  std::atomic<int> waits_{0}, asides_{0}, answers_{0};
  std::atomic<double> since_{0}, slowest_step_{0};
  SharedText<128> what_, waits_in_, aside_;
  SharedText<256> account_;
};

// A sequence of steps of a background thread of a rank. Destroying this object ends the last step.
class BackgroundActivity {
 public:
  // `activity` may be null: nothing is recorded then.
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

// An answer of a server, until this object is destroyed.
class BegunAnswer {
 public:
  // `activity` may be null: nothing is recorded then.
  explicit BegunAnswer(RankActivity* activity) : activity_(activity) {
    if (activity_) activity_->begin_answer();
  }
  ~BegunAnswer() {
    if (activity_) activity_->end_answer();
  }
  BegunAnswer(const BegunAnswer&) = delete;

 private:
  RankActivity* const activity_;
};

// A wait that is recorded as an activity once it has turned out to be long.
class ReportedWait {
 public:
  static constexpr double kShort = 0.01;  // seconds; a wait that is no longer is not recorded

  // `activity` may be null: nothing is recorded then.
  explicit ReportedWait(RankActivity* activity) : activity_(activity) {}
  ~ReportedWait() {
    if (told_) activity_->end_wait();
  }
  ReportedWait(const ReportedWait&) = delete;

  // Called before each sleep. Returns how many of the `left` seconds the sleep may last. `operation()` returns a
  // description of the operation that the thread waits for.
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
