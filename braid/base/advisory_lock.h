// One request for an advisory lock on a file: granted, refused because another holds it, or failed.
#pragma once

#include <string>

namespace braid {

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

}  // namespace braid
