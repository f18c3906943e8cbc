// Moving bytes into rings and out of them.
#include "braid/comm/shm/shm_transport.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"

namespace braid::comm::shm {
namespace {

using transport::MessageHeader;

constexpr int64_t kPieceBytes = 128 << 10;  // after each, the other side may continue
constexpr int64_t kHeaderBytes = sizeof(MessageHeader);

// This rank's end of a ring. Bytes leave it in the order they came. One writer, one reader; neither waits.
class Ring {
 public:
  Ring(SharedWorld& world, int sender, int receiver)
      : words_(world.pair(sender, receiver)), bytes_(world.ring(sender, receiver)) {}

  int64_t filled() const { return words_.written.load() - words_.read.load(); }
  int64_t room() const { return PairWords::kRingBytes - filled(); }

  // The bytes are visible to the reader when this returns. REQUIRES: count <= room().
  void write(const void* from, int64_t count) {
    const int64_t begin = words_.written.load();
    const auto* source = static_cast<const std::byte*>(from);
    in_pieces(begin, count, [&](int64_t at, int64_t done, int64_t piece) {
      std::memcpy(bytes_ + at, source + done, static_cast<size_t>(piece));
    });
    words_.written.store(begin + count);
  }

  // The room is the writer's when this returns. REQUIRES: count <= filled().
  void read(void* to, int64_t count) {
    const int64_t begin = words_.read.load();
    auto* target = static_cast<std::byte*>(to);
    in_pieces(begin, count, [&](int64_t at, int64_t done, int64_t piece) {
      std::memcpy(target + done, bytes_ + at, static_cast<size_t>(piece));
    });
    words_.read.store(begin + count);
  }

 private:
  // Two pieces if the bytes go over the end of the ring.
  template <class Copy>
  static void in_pieces(int64_t begin, int64_t count, const Copy& copy) {
    for (int64_t done = 0; done < count;) {
      const int64_t at = (begin + done) % PairWords::kRingBytes;
      const int64_t piece = std::min(count - done, PairWords::kRingBytes - at);
      copy(at, done, piece);
      done += piece;
    }
  }

  PairWords& words_;
  std::byte* const bytes_;
};

}  // namespace

void ShmTransport::send(const transport::MessagePtr& message) {
  change([&] {
    const int peer = message->route.peer;
    lanes_[peer].sends.push_back(message);
    world_.pair(rank_, peer).issued.fetch_add(1);
  });
}

void ShmTransport::fetch(int, int32_t, const transport::MessagePtr&) {
  check(false, "messages in shared memory carry their bytes");
}

void ShmTransport::stop() {
  std::vector<Lane> dropped;
  const auto hold = lock();
  stopped_ = true;
  dropped.swap(lanes_);
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
      while (!world_.failed() && push(peer)) any = true;
      while (!world_.failed() && pull(peer)) any = true;
    }
    for (SlotCollectives* one : collectives_) any |= one->advance();
  }
}

bool ShmTransport::push(int peer) {
  Lane& lane = lanes_[peer];
  if (lane.sends.empty()) return false;
  Ring ring(world_, rank_, peer);
  const transport::MessagePtr send = lane.sends.front();
  int64_t room = ring.room();
  if (lane.sent < 0) {
    if (room < kHeaderBytes) return false;
    const MessageHeader header = MessageHeader::of(*send);
    ring.write(&header, kHeaderBytes);
    room -= kHeaderBytes;
    lane.sent = 0;
  } else if (room == 0) {
    return false;
  }
  const int64_t piece = std::min({room, kPieceBytes, send->bytes - lane.sent});
  ring.write(send->data + lane.sent, piece);
  lane.sent += piece;
  if (lane.sent == send->bytes) {
    lane.sends.pop_front();
    lane.sent = -1;
    receiver_->sent(send);
  }
  world_.notifier(peer).notify();
  return true;
}

bool ShmTransport::pull(int peer) {
  Lane& lane = lanes_[peer];
  Ring ring(world_, peer, rank_);
  int64_t filled = ring.filled();
  if (!lane.arriving) {
    if (filled < kHeaderBytes) {
      look_for_end(peer);
      return false;
    }
    MessageHeader header;
    ring.read(&header, kHeaderBytes);
    filled -= kHeaderBytes;
    lane.arriving = receiver_->arrive(peer, header, 0);
    lane.received = 0;
    ++lane.num_arrived;
    if (!lane.arriving) return true;  // the world has failed
  } else if (filled == 0) {
    return false;
  }
  transport::Arrival& arrival = *lane.arriving;
  const int64_t piece = std::min({filled, kPieceBytes, arrival.header.bytes - lane.received});
  if (piece > 0) ring.read(arrival.memory() + lane.received, piece);
  lane.received += piece;
  if (lane.received == arrival.header.bytes) {
    receiver_->arrived(arrival);
    lane.arriving = nullptr;
  }
  world_.notifier(peer).notify();
  return true;
}

// What a rank has issued is visible before it leaves.
void ShmTransport::look_for_end(int peer) {
  if (peer == rank_ || !world_.left(peer)) return;
  const bool ended = world_.ended(peer);
  if (lanes_[peer].num_arrived == world_.pair(peer, rank_).issued.load()) receiver_->left(peer);
  if (ended) receiver_->ended(peer);
}

}  // namespace braid::comm::shm
