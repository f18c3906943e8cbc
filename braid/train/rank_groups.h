// The communicators of one rank: the world cut along the axes of the mesh. It owns them and does nothing else.
#pragma once

#include <memory>

#include "braid/comm/communicator.h"
#include "braid/mesh/device_mesh.h"

namespace braid {

struct RankGroups {
  // Collective over `world`, whose size is the mesh's.
  RankGroups(const DeviceMesh& mesh, Communicator& world);

  DeviceMesh mesh;
  Coords at;  // this rank's place
  Communicator& world;
  std::unique_ptr<Communicator> tensor;
  std::unique_ptr<Communicator> pipe;
  std::unique_ptr<Communicator> data;
  std::unique_ptr<Communicator> model;  // pipe x tensor: one replica
  std::unique_ptr<Communicator> tied;   // first and last stage, which share the embedding; alone in between
};

}  // namespace braid
