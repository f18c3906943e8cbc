// The [mesh] section: how many ranks along each axis.
#pragma once

namespace braid {

struct MeshSpec {
  int pipe = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int tensor = 1;
  int ranks_per_node = 0;  // neighbours with fast links between them; 0: all

  bool operator==(const MeshSpec&) const = default;
};

}  // namespace braid
