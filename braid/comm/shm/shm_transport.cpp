// Moving bytes into rings and out of them.
#include "braid/comm/shm/shm_transport.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"

namespace braid::comm::shm {
namespace {

constexpr int64_t kPieceBytes = 128 << 10;  // after each, the other side may continue

// A ring from this rank to a peer, and one back. Each has one writer and one reader.
class RingStream final : public transport::ByteStream {
 public:
  RingStream(SharedWorld& world, int rank, int peer)
      : out_(world.pair(rank, peer)),
        in_(world.pair(peer, rank)),
        out_bytes_(world.ring(rank, peer)),
        in_bytes_(world.ring(peer, rank)) {}

  // The bytes are visible to the reader when this returns.
  int64_t write(const void* from, int64_t count) override {
    const int64_t begin = out_.written.load(), room = PairWords::kRingBytes - (begin - out_.read.load());
    const auto* source = static_cast<const std::byte*>(from);
    const int64_t moved =
        in_pieces(begin, std::min({count, room, kPieceBytes}), [&](int64_t at, int64_t done, int64_t piece) {
          std::memcpy(out_bytes_ + at, source + done, static_cast<size_t>(piece));
        });
    out_.written.store(begin + moved);
    return moved;
  }

  // The room is the writer's when this returns.
  int64_t read(void* to, int64_t count) override {
    const int64_t begin = in_.read.load(), filled = in_.written.load() - begin;
    auto* target = static_cast<std::byte*>(to);
    const int64_t moved =
        in_pieces(begin, std::min({count, filled, kPieceBytes}), [&](int64_t at, int64_t done, int64_t piece) {
          std::memcpy(target + done, in_bytes_ + at, static_cast<size_t>(piece));
        });
    in_.read.store(begin + moved);
    return moved;
  }

 private:
  // Two pieces if the bytes go over the end of the ring.
  template <class Copy>
  static int64_t in_pieces(int64_t begin, int64_t count, const Copy& copy) {
    for (int64_t done = 0; done < count;) {
      const int64_t at = (begin + done) % PairWords::kRingBytes;
      const int64_t piece = std::min(count - done, PairWords::kRingBytes - at);
      copy(at, done, piece);
      done += piece;
    }
    return count;
  }

  PairWords &out_, &in_;
  std::byte *const out_bytes_, *const in_bytes_;
};

}  // namespace

ShmTransport::ShmTransport(SharedWorld& world, int rank) : world_(world), rank_(rank) {
  for (int peer = 0; peer < world.size(); ++peer) {
    streams_.emplace_back(peer, std::make_unique<RingStream>(world, rank, peer));
  }
}

void ShmTransport::send(const transport::MessagePtr& message) {
  change([&] {
    const int peer = message->route.peer;
    streams_[peer].send(message);
    world_.pair(rank_, peer).issued.fetch_add(1);
  });
}

void ShmTransport::fetch(int, int32_t, const transport::MessagePtr&) {
  check(false, "messages in shared memory carry their bytes");
}

void ShmTransport::stop() {
  std::vector<transport::MessageStream> dropped;
  const auto hold = lock();
  stopped_ = true;
  dropped.swap(streams_);
}

void ShmTransport::sleep(uint64_t seen, double seconds) {
  world_.notifier(rank_).sleep(static_cast<uint32_t>(seen), seconds, world_.spin_turns());
}

void ShmTransport::advance() {
  change([] {});
}

std::shared_ptr<void> ShmTransport::join_group(int64_t claimed, int64_t id, int num_members) {
  world_.settle_group(GroupId::of(claimed), claimed == id ? num_members : 0);
  const auto release = [this, group = GroupId::of(id)](void*) { world_.release_group(group); };
  return {this, release};
}

std::shared_ptr<transport::CollectiveQueue> ShmTransport::collectives(std::shared_ptr<const transport::Group> group) {
  return std::make_shared<SlotCollectives>(std::move(group), *this);
}

void ShmTransport::add(SlotCollectives& collectives) {
  const auto hold = lock();
  collectives_.push_back(&collectives);
}

void ShmTransport::remove(SlotCollectives& collectives) {
  const auto hold = lock();
  std::erase(collectives_, &collectives);
}

// REQUIRES: mutex_ is held.
void ShmTransport::move_on() {
  for (bool any = true; any && !world_.failed();) {
    any = false;
    for (int peer = 0; peer < world_.size(); ++peer) {
      while (!world_.failed() && move(peer)) any = true;
    }
    for (SlotCollectives* one : collectives_) any |= one->advance();
  }
}

bool ShmTransport::move(int peer) {
  if (peer == rank_) return false;
  transport::MessageStream& stream = streams_[peer];
  const bool lost = world_.lost(peer);  // before the pull: a lost peer has written its last bytes
  const bool pushed = stream.push(*receiver_), pulled = stream.pull(*receiver_);
  if (!pulled) lost ? receiver_->lost(peer) : look_for_end(peer);
  if (pushed || pulled) world_.notifier(peer).notify();
  return pushed || pulled;
}

// What a rank has issued is visible before it leaves.
void ShmTransport::look_for_end(int peer) {
  if (!world_.left(peer)) return;
  const bool ended = world_.ended(peer);
  if (streams_[peer].num_arrived() == world_.pair(peer, rank_).issued.load()) receiver_->left(peer);
  if (ended) receiver_->ended(peer);
}

}  // namespace braid::comm::shm
