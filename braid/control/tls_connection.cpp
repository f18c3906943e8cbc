// OpenSSL works on two memory buffers instead of the socket, because calls on the socket must raise no signal. The
// job's key is an external pre-shared key (PSK). There are no certificates and no session tickets.
#include "braid/control/tls_connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 20, kEncryptedAhead = 64 * 1024, kRecordBytes = 16 * 1024;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};

// Returns a session with the job's key; null if OpenSSL is out of memory.
SSL_SESSION* session_of(SSL* ssl, const Secret& key) {
  SSL_SESSION* session = SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const bool made = SSL_SESSION_set1_master_key(session, key.bytes().data(), Secret::kBytes) == 1 &&
                    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kAes128GcmSha256)) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

// Returns null after forget_keys().
const JobKeys* keys_of(SSL* ssl) { return static_cast<const JobKeys*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl))); }

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* length, SSL_SESSION** session) {
  const JobKeys* keys = keys_of(ssl);
  if (keys == nullptr) return 0;
  *name = reinterpret_cast<const unsigned char*>(keys->identity().data());
  *length = keys->identity().size();
  *session = session_of(ssl, keys->tls());
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* name, size_t length, SSL_SESSION** session) {
  const JobKeys* keys = keys_of(ssl);
  const std::string_view named(reinterpret_cast<const char*>(name), length);
  const bool ours = keys != nullptr && named == keys->identity();
  *static_cast<bool*>(SSL_get_app_data(ssl)) = !ours;
  *session = ours ? session_of(ssl, keys->tls()) : nullptr;  // without one the handshake fails: there is no certificate
  return 1;
}

std::string tls_fault() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return cat("has broken TLS: ", reason != nullptr ? reason : "no reason");
}

}  // namespace

struct TlsContext::State {
  explicit State(std::shared_ptr<const JobKeys> job_keys)
      : keys(std::move(job_keys)), context(SSL_CTX_new(TLS_method()), SSL_CTX_free) {}

  std::shared_ptr<const JobKeys> keys;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context;
};

TlsContext::TlsContext(std::shared_ptr<const JobKeys> keys) : state_(std::make_unique<State>(std::move(keys))) {
  SSL_CTX* context = state_->context.get();
  check(context != nullptr, "OpenSSL makes no context");
  SSL_CTX_set_app_data(context, state_->keys.get());
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1;
  check(set, "OpenSSL has no TLS 1.3 with AES-128-GCM");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(context, offer_key);
  SSL_CTX_set_psk_find_session_callback(context, find_key);
}

TlsContext::~TlsContext() = default;

void TlsContext::forget_keys() {
  SSL_CTX_set_app_data(state_->context.get(), nullptr);
  state_->keys.reset();
}

struct TlsConnection::Tls {
  explicit Tls(SSL_CTX* context)
      : ssl(SSL_new(context), SSL_free), in(BIO_new(BIO_s_mem())), out(BIO_new(BIO_s_mem())) {
    check(ssl != nullptr && in != nullptr && out != nullptr, "OpenSSL makes no connection");
    SSL_set_bio(ssl.get(), in, out);
    SSL_set_app_data(ssl.get(), &other_key);
  }

  std::unique_ptr<SSL, decltype(&SSL_free)> ssl;
  BIO *in, *out;           // owned by ssl
  bool other_key = false;  // the peer named the key of another attempt
};

TlsConnection::TlsConnection(const TlsContext& context, Socket socket, TlsSide side, size_t most_queued)
    : socket_(std::move(socket)),
      tls_(std::make_unique<Tls>(context.state_->context.get())),
      most_queued_(most_queued),
      peer_(socket_.peer()) {
  if (side == TlsSide::Server) {
    SSL_set_accept_state(tls_->ssl.get());
  } else {
    SSL_set_connect_state(tls_->ssl.get());
  }
}

TlsConnection::~TlsConnection() = default;

void TlsConnection::send(const Frame& frame) {
  if (!fault_.empty() || send_failed_) return;
  queued_bytes_ += frame->size();
  queue_.push_back(frame);
  if (queued_bytes_ > most_queued_) end(cat("does not read: ", human_bytes(double(queued_bytes_)), " wait for it"));
}

void TlsConnection::advance() {
  std::array<char, 64 * 1024> bytes;
  for (size_t read = 0; fault_.empty() && read < kReadAtOnce;) {
    const IoResult moved = socket_.receive(bytes);
    if (moved.bytes == 0) {
      if (!moved.closed.empty()) end(moved.closed);
      break;
    }
    read += moved.bytes;
    active_ = true;
    BIO_write(tls_->in, bytes.data(), static_cast<int>(moved.bytes));
    decrypt();
  }
  flush();
}

// Decrypts all received bytes. None may stay inside OpenSSL, because a poll of the socket would not report them.
void TlsConnection::decrypt() {
  SSL* ssl = tls_->ssl.get();
  std::array<char, kRecordBytes> bytes;
  int read = 0;
  ERR_clear_error();
  while ((read = SSL_read(ssl, bytes.data(), static_cast<int>(bytes.size()))) > 0) {
    if (reader_.add({bytes.data(), static_cast<size_t>(read)})) continue;
    return end("has sent what is no message");
  }
  const int error = SSL_get_error(ssl, read);
  if (error == SSL_ERROR_WANT_READ) return;
  std::string why = error == SSL_ERROR_ZERO_RETURN ? "has closed its connection" : tls_fault();
  if (tls_->other_key) why = "is in another attempt of the job";
  flush();  // sends the TLS alert
  end(why);
}

void TlsConnection::encrypt() {
  SSL* ssl = tls_->ssl.get();
  ERR_clear_error();
  if (!SSL_is_init_finished(ssl)) SSL_do_handshake(ssl);  // SSL_read() reports a failure
  while (!queue_.empty() && SSL_is_init_finished(ssl) && BIO_ctrl_pending(tls_->out) < kEncryptedAhead) {
    const std::string& frame = *queue_.front();
    const size_t count = std::min(kRecordBytes, frame.size() - begun_bytes_);
    if (SSL_write(ssl, frame.data() + begun_bytes_, static_cast<int>(count)) <= 0) return end(tls_fault());
    begun_bytes_ += count;
    queued_bytes_ -= count;
    if (begun_bytes_ < frame.size()) continue;
    queue_.pop_front();
    begun_bytes_ = 0;
  }
}

// A failed send does not end the connection: the peer may have sent a reason before it closed, which is still to be
// read.
void TlsConnection::flush() {
  while (fault_.empty() && !send_failed_) {
    encrypt();
    std::array<char, kRecordBytes> bytes;
    for (int read = 0; (read = BIO_read(tls_->out, bytes.data(), static_cast<int>(bytes.size()))) > 0;) {
      outgoing_.append(bytes.data(), static_cast<size_t>(read));
    }
    if (outgoing_.empty() || !fault_.empty()) return;
    const IoResult moved = socket_.send(outgoing_);
    send_failed_ = !moved.closed.empty();
    outgoing_.erase(0, send_failed_ ? outgoing_.size() : moved.bytes);
    if (moved.bytes == 0) return;
  }
}

std::optional<std::string> TlsConnection::next_message() {
  auto& messages = reader_.messages();
  if (messages.empty()) return std::nullopt;
  std::string message = std::move(messages.front());
  messages.pop_front();
  return message;
}

bool TlsConnection::take_activity() { return std::exchange(active_, false); }

bool TlsConnection::established() const { return SSL_is_init_finished(tls_->ssl.get()) == 1; }

bool TlsConnection::drained() const {
  return !fault_.empty() || send_failed_ || (queue_.empty() && outgoing_.empty() && socket_.acknowledged());
}

pollfd TlsConnection::wanted() const {
  const bool writes = !send_failed_ && (!outgoing_.empty() || (!queue_.empty() && established()));
  return {socket_.descriptor(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
}

void TlsConnection::end(const std::string& why) {
  fault_ = why;
  queue_.clear();
  queued_bytes_ = 0;
  outgoing_.clear();
  socket_.close();
}

}  // namespace braid::control
