// One owner of a file at a time, among all processes that see it.
#pragma once

#include <string>

namespace braid {

// One request for an advisory lock on a file: granted, refused because another holds it, or failed.
enum class LockMode { Shared, Exclusive };
enum class LockResult { Granted, HeldByAnother, Unsupported };  // Unsupported: the file system has no locks

using Flock = int (*)(int descriptor, int operation);

// Requests flock(2) on an open file once, without waiting. NFS emulates it by byte-range locks: there a shared lock
// needs a descriptor that is open for reading, and an exclusive one a descriptor that is open for writing. Leaves errno
// as the system's reason. Throws IoError about `path` when the answer is none of LockResult.
LockResult request_lock(int descriptor, LockMode mode, const std::string& path, Flock call);

// A lock on a file that exists. The system releases it when the process and all copies made by fork() have ended.
class AdvisoryLock {
 public:
  // Opens `path` as `mode` needs, without following a link, and requests the lock once. Throws IoError when the file
  // cannot be opened, and as request_lock().
  AdvisoryLock(const std::string& path, LockMode mode);
  ~AdvisoryLock() { release(); }
  AdvisoryLock(const AdvisoryLock&) = delete;
  AdvisoryLock& operator=(const AdvisoryLock&) = delete;

  LockResult result() const { return result_; }
  // Releases the lock, also for copies of this process. Called once or more, by one thread.
  void release();

 private:
  int descriptor_;
  LockResult result_ = LockResult::Unsupported;
};

// flock(2): the system gives the lock back when its owner ends, however that happens, so none is ever stale. It is
// advisory, and works over the network where the network's file system passes it on. A program that this process
// starts does not get it (the descriptor closes on exec); a copy made by fork() alone shares it until both have ended.
class FileLock {
 public:
  // NoLocks: the file system has none, so nobody is kept out.
  enum class State { Ours, Theirs, NoLocks };

  // Makes `path` where it is not there and asks for the lock once, without waiting. The owner writes `owner`, one line,
  // into the file for others to read, where the disk has room. `call` stands for flock(2) in tests. Throws IoError when
  // the file cannot be made or opened, is no regular file (links are not followed), or when the request fails
  // (file_lock.h).
  FileLock(std::string path, const std::string& owner, Flock call = nullptr);
  // Gives the lock back. The file stays, empty, unless remove() was called.
  ~FileLock();
  FileLock(const FileLock&) = delete;

  // Removes the file if this owns it. A process that waits for the lock on it notices, and makes a new file.
  void remove() const;

  State state() const { return state_; }
  // Theirs: the line that the owner wrote, empty when it has not yet.
  const std::string& owner() const { return owner_; }
  // NoLocks: the system's words.
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
