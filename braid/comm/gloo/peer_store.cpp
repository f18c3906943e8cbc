// Waits for keys, and knows from a key which peer it is of.
#include "braid/comm/gloo/peer_store.h"

#include <algorithm>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/text.h"

namespace braid::comm::gloo {
namespace {

using transport::WireError;

class PeerStore final : public c10d::Store {
 public:
  explicit PeerStore(const GlooWire::Options& options) : options_(options) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<PeerStore>(options_); }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    options_.store->set(options_.prefix + key, std::string(value.begin(), value.end()));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const std::string value = awaited(key);
    return {value.begin(), value.end()};
  }
  bool check(const std::vector<std::string>& keys) override {
    return std::ranges::all_of(
        keys, [this](const std::string& key) { return options_.store->get(options_.prefix + key, 0).has_value(); });
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) awaited(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

  // Gloo does not call these.
  int64_t add(const std::string&, int64_t) override { throw WireError("a store that does not count"); }
  bool deleteKey(const std::string&) override { return false; }
  int64_t getNumKeys() override { return 0; }

 private:
  // Reports the peer that Gloo connects to next. Gloo first reads the address of the peer from a key that ends with its
  // number.
  void tell_of_peer(const std::string& key) const {
    const size_t digits = key.find_last_not_of("0123456789") + 1;
    if (digits == key.size() || key.size() - digits > 6) return;
    const int peer = std::stoi(key.substr(digits));
    if (peer < options_.size && peer != options_.rank) options_.on_peer(peer);
  }

  std::string awaited(const std::string& key) const {
    constexpr double kNap = 0.05;
    tell_of_peer(key);
    const double end = now_seconds() + options_.connect_seconds;
    do {
      if (options_.given_up && options_.given_up()) throw WireError("given up");
      if (auto value = options_.store->get(options_.prefix + key, kNap)) return *value;
    } while (now_seconds() < end);
    throw WireError(cat("a peer did not come within ", exact(options_.connect_seconds), " s"));
  }

  const GlooWire::Options options_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> peer_store(const GlooWire::Options& options) {
  return c10::make_intrusive<PeerStore>(options);
}

}  // namespace braid::comm::gloo
