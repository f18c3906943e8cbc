// Memory for secrets: pages that core dumps omit and that forked children do not have.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace braid::control {

// A page for secrets (MADV_DONTDUMP, MADV_DONTFORK), zero at first. The destructor overwrites the page. A forked child
// must not read or write it; in a child the destructor does nothing.
class SecretPage {
 public:
  static constexpr size_t kBytes = 4096;

  // Throws RunError if the system cannot provide such a page.
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

// A secret of 256 bits in a page of its own.
class Secret {
 public:
  static constexpr size_t kBytes = 32;

  std::span<unsigned char, kBytes> bytes() const { return page_.bytes().first<kBytes>(); }

 private:
  SecretPage page_;
};

}  // namespace braid::control
