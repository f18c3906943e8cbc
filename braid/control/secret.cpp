// A write that no compiler leaves out.
#include "braid/control/secret.h"

#include <openssl/crypto.h>

namespace braid {

Secret::~Secret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace braid
