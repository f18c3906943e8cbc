// Frames, payloads and the two threads. Everything is posted to Gloo at once and under `sending_`, so that frames keep
// their order; what has been sent is forgotten when the peer says that it has come, which no thread has to wait for.
#include "braid/comm/gloo/connection.h"

#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/started_thread.h"

namespace braid::comm::gloo {

Connection::Connection(Engine& engine, int peer, Receiver& receiver)
    : engine_(engine), peer_(peer), receiver_(receiver) {}

Connection::~Connection() { stop(); }

void Connection::start() {
  frames_ = started_thread("a connection", [this] { receive_frames(); });
  waiter_ = started_thread("a connection", [this] { wait_for_payloads(); });
}

void Connection::stop() {
  close();
  if (frames_.joinable()) frames_.join();
  if (waiter_.joinable()) waiter_.join();
}

void Connection::close() {
  const std::scoped_lock hold(fetching_);
  closed_ = true;
  for (const Frame& frame : posted_) {
    if (frame.transfer) frame.transfer->abort();
  }
  for (const Payload& payload : payloads_) payload.transfer->abort();
  fetched_.notify_one();
}

void Connection::send(const MessageHeader& header, const void* bytes) {
  const std::scoped_lock hold(sending_);
  try {
    post(header, bytes, header.bytes);
  } catch (const EngineError&) {  // receive_frames() says so
  }
}

void Connection::send(const MessageHeader& header, const MessagePtr& parcel) {
  const std::scoped_lock hold(sending_);
  try {
    MessageHeader tagged = header;
    tagged.payload = next_tag_ = next_tag_ % (Engine::kMaxTag - 1) + 1;
    Payload& sent = sent_[tagged.payload] = {tagged.payload, parcel, nullptr};
    sent.transfer = engine_.send(parcel->data, parcel->bytes, peer_, tagged.payload);
    post(tagged, nullptr, 0);
  } catch (const EngineError&) {
  }
}

// What the other thread sends beside it must not be counted: a lone Seen is not answered.
void Connection::end() {
  const std::scoped_lock hold(sending_);
  try {
    post({.what = MessageHeader::What::End}, nullptr, 0);
  } catch (const EngineError&) {
  }
  ends_after_ = forgotten_ + static_cast<int64_t>(outgoing_.size());
}

bool Connection::end_heard() {
  const std::scoped_lock hold(sending_);
  return ends_after_ >= 0 && forgotten_ >= ends_after_;
}

void Connection::fetch(int32_t payload, const MessagePtr& parcel) {
  const std::scoped_lock hold(fetching_);
  if (closed_) return;
  try {
    payloads_.push_back({payload, parcel, engine_.receive(parcel->data, parcel->bytes, peer_, payload)});
    fetched_.notify_one();
  } catch (const EngineError&) {
  }
}

void Connection::post(MessageHeader header, const void* bytes, int64_t count) {
  header.seen = told_ = received_;
  Frame frame{std::make_unique_for_overwrite<std::byte[]>(sizeof header + count), nullptr};
  std::memcpy(frame.bytes.get(), &header, sizeof header);
  if (count > 0) std::memcpy(frame.bytes.get() + sizeof header, bytes, count);
  frame.transfer = engine_.send(frame.bytes.get(), static_cast<int64_t>(sizeof header) + count, peer_, kFrameTag);
  outgoing_.push_back(std::move(frame));
}

void Connection::post_receive(Frame& frame) {
  constexpr int64_t kFrameBytes = sizeof(MessageHeader) + kInside;
  const std::scoped_lock hold(fetching_);
  if (closed_) throw EngineError("aborted");
  if (!frame.bytes) frame.bytes = std::make_unique_for_overwrite<std::byte[]>(kFrameBytes);
  frame.transfer = engine_.receive(frame.bytes.get(), kFrameBytes, peer_, kFrameTag);
}

void Connection::receive_frames() {
  std::string why;
  try {
    for (Frame& frame : posted_) post_receive(frame);
    for (int turn = 0;; turn = (turn + 1) % kPosted) {
      posted_[turn].transfer->wait();
      handle(posted_[turn]);
      post_receive(posted_[turn]);
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  close();
  receiver_.closed(peer_, why);
}

void Connection::handle(const Frame& frame) {
  MessageHeader header;
  std::memcpy(&header, frame.bytes.get(), sizeof header);
  forget_seen(header.seen);
  switch (header.what) {
    case MessageHeader::What::Parcel:
    case MessageHeader::What::Leave:
    case MessageHeader::What::End:
    case MessageHeader::What::Seen:
      receiver_.arrive(peer_, header, frame.bytes.get() + sizeof header);
      break;
    case MessageHeader::What::Taken:
      if (auto sent = pop_sent(header.payload)) {
        sent->transfer->wait();  // it has ended, or does in this moment
        receiver_.done(sent->parcel);
      }
      break;
    case MessageHeader::What::Never:
      if (const auto sent = pop_sent(header.payload)) receiver_.refused(sent->parcel);
      break;
  }
  const std::scoped_lock hold(sending_);
  const bool ends = header.what == MessageHeader::What::End;
  if (ends || received_ - told_ >= kUntold) post({.what = MessageHeader::What::Seen}, nullptr, 0);
}

void Connection::forget_seen(int64_t seen) {
  const std::scoped_lock hold(sending_);
  ++received_;
  for (; forgotten_ < seen && !outgoing_.empty(); ++forgotten_) {
    outgoing_.front().transfer->wait();  // as above
    outgoing_.pop_front();
  }
}

std::optional<Connection::Payload> Connection::pop_sent(int32_t tag) {
  const std::scoped_lock hold(sending_);
  const auto found = sent_.find(tag);
  if (found == sent_.end()) return std::nullopt;
  std::optional<Payload> payload = std::move(found->second);
  sent_.erase(found);
  return payload;
}

// A payload that is waited for is on its way, so they are in the order of their coming or nearly so.
void Connection::wait_for_payloads() {
  for (;;) {
    std::unique_lock hold(fetching_);
    fetched_.wait(hold, [this] { return closed_ || !payloads_.empty(); });
    if (closed_) return;
    const Payload& first = payloads_.front();
    hold.unlock();
    try {
      first.transfer->wait();
    } catch (const EngineError&) {
      return;
    }
    hold.lock();
    const Payload payload = std::move(payloads_.front());
    payloads_.pop_front();
    hold.unlock();
    send({.what = MessageHeader::What::Taken, .payload = payload.tag});
    receiver_.done(payload.parcel);
  }
}

}  // namespace braid::comm::gloo
