// One owner of a file at a time, among all processes that see it.
#pragma once

#include <string>

#include "braid/base/advisory_lock.h"

namespace braid {

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
  // (advisory_lock.h).
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
