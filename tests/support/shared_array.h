// Values that all ranks of a test see, be they threads or processes forked later.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <stdexcept>

namespace braid {

template <class T>
class SharedArray {
 public:
  explicit SharedArray(size_t count = 1) : bytes_(count * sizeof(std::atomic<T>)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory for a test");
    values_ = static_cast<std::atomic<T>*>(memory);
    for (size_t i = 0; i < count; ++i) new (values_ + i) std::atomic<T>();
  }
  ~SharedArray() { munmap(values_, bytes_); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  std::atomic<T>& operator[](size_t i) const { return values_[i]; }

 private:
  const size_t bytes_;
  std::atomic<T>* values_;
};

}  // namespace braid
