// Advisory locks on files: one owner at a time, among all processes that see the file.
#pragma once

#include <string>

namespace braid {

// The modes and results of a request for an advisory lock.
enum class LockMode { Shared, Exclusive };
enum class LockResult { Granted, HeldByAnother, Unsupported };  // Unsupported: the file system has no locks

using Flock = int (*)(int descriptor, int operation);

// Requests flock(2) on an open file once, without waiting. Leaves errno as the system set it. NFS emulates flock(2) by
// byte-range locks: there a shared lock needs a descriptor that is open for reading, and an exclusive lock one that is
// open for writing. Throws IoError about `path` if the request fails in a way that LockResult does not cover.
LockResult request_lock(int descriptor, LockMode mode, const std::string& path, Flock call);

// A lock on a file that exists. The system releases it when the process and all copies made by fork() have ended.
class AdvisoryLock {
 public:
  // Opens `path` with the access that `mode` needs, without following a link, and requests the lock once. Throws
  // IoError if the file cannot be opened, and as request_lock() does.
  AdvisoryLock(const std::string& path, LockMode mode);
  ~AdvisoryLock() { release(); }
  AdvisoryLock(const AdvisoryLock&) = delete;
  AdvisoryLock& operator=(const AdvisoryLock&) = delete;

  LockResult result() const { return result_; }
  // Releases the lock, also for copies of this process made by fork(). One thread may call this several times.
  void release();

 private:
  int descriptor_;
  LockResult result_ = LockResult::Unsupported;
};

// An exclusive lock by flock(2). The system releases the lock when its owner ends, for whatever reason, so no lock is
// ever stale. The lock is advisory, and works over a network if the network's file system supports it. A program that
// this process starts does not inherit the lock (close-on-exec). A copy made by fork() shares the lock until both
// processes have ended.
class FileLock {
 public:
  // NoLocks: the file system has no locks, so other processes are not kept out.
  enum class State { Ours, Theirs, NoLocks };

  // Creates `path` if it is missing and requests the lock once, without waiting. The owner writes `owner`, one line,
  // into the file for others to read, if the disk has room. Tests pass a replacement for flock(2) as `call`. Throws
  // IoError if the file cannot be created or opened, is not a regular file (links are not followed), or if the request
  // fails.
  FileLock(std::string path, const std::string& owner, Flock call = nullptr);
  // Releases the lock. The file stays, empty, unless remove() was called.
  ~FileLock();
  FileLock(const FileLock&) = delete;

  // Removes the file if this object owns the lock. A process that waits for the lock on it notices and creates a new
  // file.
  void remove() const;

  State state() const { return state_; }
  // Returns the line that the owner wrote, empty if there is none yet. REQUIRES: state() is Theirs.
  const std::string& owner() const { return owner_; }
  // Returns the system's message. REQUIRES: state() is NoLocks.
  const std::string& why() const { return why_; }

 private:
  bool request(const std::string& owner);
  void write(const std::string& line) const;
  std::string first_line() const;

  std::string path_;
  Flock call_;
  int descriptor_;
  State state_ = State::Ours;
  std::string owner_, why_;
};

}  // namespace braid
