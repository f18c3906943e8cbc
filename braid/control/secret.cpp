// Uses mmap(2), madvise(2), and OPENSSL_cleanse(3), which no compiler optimizes away. In a forked child the address of
// a page may belong to another mapping, so only the process that made a page unmaps it.
#include "braid/control/secret.h"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {

SecretPage::SecretPage() : owner_(getpid()) {
  void* const page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool mapped = page != MAP_FAILED;
  if (!mapped || madvise(page, kBytes, MADV_DONTDUMP) != 0 || madvise(page, kBytes, MADV_DONTFORK) != 0) {
    const int error = errno;
    if (mapped) munmap(page, kBytes);
    throw RunError(cat("the system gives no page for a secret: ", std::strerror(error)));
  }
  page_ = static_cast<unsigned char*>(page);
}

SecretPage::SecretPage(SecretPage&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), owner_(other.owner_) {}

SecretPage& SecretPage::operator=(SecretPage&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(owner_, other.owner_);
  return *this;
}

void SecretPage::wipe() {
  if (page_ == nullptr || owner_ != getpid()) return;
  OPENSSL_cleanse(page_, kBytes);
  munmap(std::exchange(page_, nullptr), kBytes);
}

}  // namespace braid::control
