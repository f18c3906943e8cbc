// A system that has no more threads, for a whole test binary: the pthread_create of this header stands before the C
// library's. It is weak, so any number of sources include it.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace braid {

// While one exists, so many threads start on behalf of the thread that made it; then the answer is EAGAIN. Other
// threads start as many as they like.
class ThreadLimit {
 public:
  explicit ThreadLimit(int left) : before_(left_) { left_ = left; }
  ~ThreadLimit() { left_ = before_; }
  ThreadLimit(const ThreadLimit&) = delete;

  static bool refuses() {
    if (left_ < 0) return false;
    if (left_ == 0) return true;
    --left_;
    return false;
  }

 private:
  static inline thread_local int left_ = -1;  // no limit
  const int before_;
};

}  // namespace braid

extern "C" __attribute__((weak)) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                    void* (*run)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return braid::ThreadLimit::refuses() ? EAGAIN : next(thread, attributes, run, argument);
}
