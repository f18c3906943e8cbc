// Memory for what nobody else may know: pages that core dumps leave out and that forked children do not have.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace braid::control {

// One page of zeros (MADV_DONTDUMP, MADV_DONTFORK). The destructor overwrites it. A forked child must not read or write
// it; the destructor does nothing there.
class SecretPage {
 public:
  static constexpr size_t kBytes = 4096;

  // Throws RunError when the system has no such page.
  SecretPage();
  SecretPage(SecretPage&& other) noexcept;
  SecretPage& operator=(SecretPage&& other) noexcept;
  ~SecretPage() { wipe(); }

  std::span<unsigned char, kBytes> bytes() const { return std::span<unsigned char, kBytes>(page_, kBytes); }

 private:
  void wipe();

  unsigned char* page_ = nullptr;
  pid_t owner_ = 0;
};

// 256 bits in a page of their own.
class Secret {
 public:
  static constexpr size_t kBytes = 32;

  std::span<unsigned char, kBytes> bytes() const { return page_.bytes().first<kBytes>(); }

 private:
  SecretPage page_;
};

}  // namespace braid::control
