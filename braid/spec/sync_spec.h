// The [sync] section: how replicas are kept in step.
#pragma once

namespace braid {

struct SyncSpec {
  double bucket_mb = 25;       // gradient bucket, in 2^20 bytes
  double first_bucket_mb = 1;  // the bucket that is ready first in backward

  bool operator==(const SyncSpec&) const = default;
};

}  // namespace braid
