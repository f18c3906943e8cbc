// All parcels of one rank: which side meets which, over one lane to each peer.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "braid/comm/gloo/gloo_lane.h"
#include "braid/comm/gloo/gloo_news.h"
#include "braid/comm/world_fate.h"

namespace braid {

// Thread-safe.
class GlooPost final : private GlooLane::Receiver {
 public:
  // A peer that died is known by name so soon, if anybody watches it.
  static constexpr double kNamedSeconds = 0.3;

  // All of them outlive this. `engine` is null in a world of one rank. Throws RunError when no thread can be started.
  GlooPost(GlooEngine* engine, int rank, int size, WorldFate& fate, GlooNews& news);
  ~GlooPost();

  int rank() const { return rank_; }

  // The parcel has been issued. Its owner may be told that it is done before this returns.
  void add(const GlooParcelPtr& parcel);
  // The rank begins no more parcels on the lines Message and First: says so to all peers and refuses what comes too
  // late.
  void leave();
  // After leave(), once all parcels are done or lost: says so to all peers.
  void end();
  // Closes all connections and waits until no thread of this touches a parcel. The news of it are no failure.
  void stop();

  // The parcel is not done and never will be.
  bool lost(const GlooParcel& parcel) const;
  bool any_left() const { return num_left_.load() > 0; }
  // No message is in flight, or none that can ever come to its end.
  bool idle() const;
  // After end(): all peers have come to their end too, and have all that this rank has sent; or they are gone.
  bool all_ended() const;

 private:
  // A parcel that came before its receive.
  struct Early {
    GlooHeader header;
    std::unique_ptr<std::byte[]> bytes;
  };
  struct Peer {
    std::unique_ptr<GlooLane> lane;  // null for the rank itself
    std::atomic<bool> left{false}, ended{false};
    std::atomic<bool> gone{false};  // the connection is closed
    std::atomic<int> sends{0};      // long ones on the line Message that are not over
  };

  void arrive(int peer, const GlooHeader& header, const std::byte* bytes) override;
  void refused(const GlooParcelPtr& parcel) override;
  void done(const GlooParcelPtr& parcel) override;
  void closed(int peer, const std::string& why) override;

  void send(const GlooParcelPtr& parcel);
  void receive(const GlooParcelPtr& parcel);
  void take(const GlooParcelPtr& parcel, const GlooHeader& header, const std::byte* bytes);
  void refuse(int peer, const GlooHeader& header);
  bool agrees(const GlooParcel& parcel, const GlooHeader& header);
  void note_left(int peer);
  void count_send(const GlooParcel& parcel, int change);
  void finish(const GlooParcelPtr& parcel);

  GlooEngine* const engine_;
  const int rank_, size_;
  WorldFate& fate_;
  GlooNews& news_;
  std::vector<Peer> peers_;
  std::atomic<int> num_left_{0};
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  bool leaving_ = false;
  std::map<GlooRoute, std::deque<Early>> early_;
  std::map<GlooRoute, std::deque<GlooParcelPtr>> receives_;
};

}  // namespace braid
