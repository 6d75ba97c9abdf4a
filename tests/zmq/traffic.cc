// SPDX-License-Identifier: Apache-2.0
//
// One side of a ZeroMQ connection that carries numbered messages, for tests between processes. Each message begins with
// its sender and its number; the rest is a pattern made of both. A receiver checks all of it.
//
//   traffic push ENDPOINT [OPTION...]   sends COUNT messages
//   traffic pull ENDPOINT [OPTION...]   receives COUNT messages of each of SENDERS senders, in order
//   traffic both ENDPOINT [OPTION...]   sends COUNT messages without receiving until it can send no more, then both
//   ways
//
// Options are name=value: bind, count, size, sender, senders, hwm, ring, pause (microseconds at most, after a message
// in a thousand, at random), seed, gaps (1: messages may be missing, as after a crash, but never come twice or out of
// order), linger (ms), idle (ms to stay after the last message), curve (1: encrypted), handshake (ms that one may
// take), wherry (1: what comes over another transport is an error). What happened goes to standard output.
#include <zmq.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Head {
  std::uint64_t sender;
  std::uint64_t number;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "traffic: %s\n", what.c_str());
  std::exit(1);
}

void check(bool good, const char* what) {
  if (!good) fail(std::string(what) + ": " + zmq_strerror(zmq_errno()));
}

using Options = std::map<std::string, long>;

Options parse(int argc, char** argv) {
  Options options{{"bind", 0},    {"count", 1000}, {"size", 64}, {"sender", 0},         {"senders", 1},
                  {"hwm", 1000},  {"ring", 0},     {"pause", 0}, {"seed", 1},           {"gaps", 0},
                  {"linger", -1}, {"idle", 0},     {"curve", 0}, {"handshake", 30'000}, {"wherry", 0}};
  for (int i = 3; i < argc; i++) {
    const std::string text = argv[i];
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || options.count(name) == 0) fail("no option " + text);
    options[name] = std::atol(text.c_str() + equals + 1);
  }
  if (options["size"] < long{sizeof(Head)}) fail("a message has at least 16 bytes");
  return options;
}

/// Now and then a pause, so that either side is ahead of the other for a while.
class Pauses {
 public:
  explicit Pauses(const Options& options) : random_(options.at("seed")), most_(options.at("pause")) {}
  void maybe() {
    if (most_ == 0 || random_() % 1000 != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % most_));
  }

 private:
  std::mt19937_64 random_;
  std::uint64_t most_;
};

std::uint64_t pattern(const Head& head) {
  return head.sender * 0x9e3779b97f4a7c15u ^ head.number * 0xbf58476d1ce4e5b9u;
}

void fill(std::vector<char>& message, const Head& head) {
  std::memcpy(message.data(), &head, sizeof head);
  const std::uint64_t word = pattern(head);
  for (std::size_t at = sizeof head; at + sizeof word <= message.size(); at += 4096) {
    std::memcpy(message.data() + at, &word, sizeof word);
  }
  if (message.size() >= sizeof head + sizeof word) {
    std::memcpy(message.data() + message.size() - sizeof word, &word, sizeof word);
  }
}

Head checked_head(const char* bytes, std::size_t size) {
  Head head{};
  std::memcpy(&head, bytes, sizeof head);
  const std::uint64_t word = pattern(head);
  // The last word overlaps one of the pattern's in some sizes; the sender wrote it last.
  for (std::size_t at = sizeof head; at + 2 * sizeof word <= size; at += 4096) {
    if (std::memcmp(bytes + at, &word, sizeof word) != 0) fail("wrong bytes in message " + std::to_string(head.number));
  }
  if (size >= sizeof head + sizeof word && std::memcmp(bytes + size - sizeof word, &word, sizeof word) != 0) {
    fail("wrong last bytes in message " + std::to_string(head.number));
  }
  return head;
}

class Socket {
 public:
  /// `watched`: for await_peer().
  Socket(int type, const char* endpoint, const Options& options, bool watched = false)
      : over_wherry_(options.at("wherry") != 0), context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
    check(socket_ != nullptr, "zmq_socket");
    if (watched) watch();
    for (const int hwm : {ZMQ_SNDHWM, ZMQ_RCVHWM}) set(hwm, options.at("hwm"));
    set(ZMQ_LINGER, options.at("linger"));
    set(ZMQ_HANDSHAKE_IVL, options.at("handshake"));
    if (options.at("ring") != 0) set(ZMQ_RCVBUF, options.at("ring"));
    const bool binds = options.at("bind") != 0;
    if (options.at("curve") != 0) encrypt(binds);
    check((binds ? zmq_bind : zmq_connect)(socket_, endpoint) == 0, endpoint);
  }
  ~Socket() {
    if (events_ != nullptr) zmq_close(events_);
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void* get() { return socket_; }

  /// Waits until a peer has been shaken hands with.
  void await_peer() {
    zmq_msg_t event;
    zmq_msg_init(&event);
    while (zmq_msg_recv(&event, events_, 0) < 0) check(zmq_errno() == EINTR, "zmq_msg_recv of an event");
    zmq_msg_close(&event);
  }

  /// False: there is no room (with ZMQ_DONTWAIT).
  bool send(const std::vector<char>& message, int flags) {
    while (zmq_send(socket_, message.data(), message.size(), flags) < 0) {
      if (zmq_errno() == EAGAIN) return false;
      check(zmq_errno() == EINTR, "zmq_send");
    }
    return true;
  }

  Head receive(std::size_t size) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (zmq_msg_recv(&message, socket_, 0) < 0) check(zmq_errno() == EINTR, "zmq_msg_recv");
    if (zmq_msg_size(&message) != size) fail("a message of " + std::to_string(zmq_msg_size(&message)) + " bytes");
    if (over_wherry_ && zmq_msg_gets(&message, "Peer-Pid") == nullptr) fail("a message that came not over Wherry");
    const Head head = checked_head(static_cast<const char*>(zmq_msg_data(&message)), size);
    zmq_msg_close(&message);
    return head;
  }

 private:
  void set(int option, long value) {
    const int number = static_cast<int>(value);
    check(zmq_setsockopt(socket_, option, &number, sizeof number) == 0, "zmq_setsockopt");
  }

  void watch() {
    const char* name = "inproc://peers";
    check(zmq_socket_monitor(socket_, name, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) == 0, "zmq_socket_monitor");
    events_ = zmq_socket(context_, ZMQ_PAIR);
    check(events_ != nullptr && zmq_connect(events_, name) == 0, name);
  }

  /// The keys of libzmq's own examples: no secrets.
  void encrypt(bool server) {
    const char* server_public = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    const char* server_secret = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
    const char* client_public = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
    const char* client_secret = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
    if (server) {
      set(ZMQ_CURVE_SERVER, 1);
      check(zmq_setsockopt(socket_, ZMQ_CURVE_SECRETKEY, server_secret, 41) == 0, "ZMQ_CURVE_SECRETKEY");
      return;
    }
    check(zmq_setsockopt(socket_, ZMQ_CURVE_SERVERKEY, server_public, 41) == 0, "ZMQ_CURVE_SERVERKEY");
    check(zmq_setsockopt(socket_, ZMQ_CURVE_PUBLICKEY, client_public, 41) == 0, "ZMQ_CURVE_PUBLICKEY");
    check(zmq_setsockopt(socket_, ZMQ_CURVE_SECRETKEY, client_secret, 41) == 0, "ZMQ_CURVE_SECRETKEY");
  }

  const bool over_wherry_;  ///< must be what is received, where alone the peer's process is known
  void* context_;
  void* socket_;
  void* events_ = nullptr;
};

/// What each sender has sent so far.
class Order {
 public:
  explicit Order(const Options& options) : gaps_(options.at("gaps") != 0), next_(options.at("senders")) {}
  void take(const Head& head) {
    if (head.sender >= next_.size()) fail("a message of nobody");
    std::uint64_t& next = next_[head.sender];
    if (head.number < next || (!gaps_ && head.number != next)) {
      fail("message " + std::to_string(head.number) + " of sender " + std::to_string(head.sender) + " instead of " +
           std::to_string(next));
    }
    next = head.number + 1;
  }
  /// Whether every sender's last message has come.
  [[nodiscard]] bool complete(std::uint64_t count) const {
    for (const std::uint64_t next : next_) {
      if (next < count) return false;
    }
    return true;
  }

 private:
  bool gaps_;
  std::vector<std::uint64_t> next_;
};

void idle(const Options& options) { std::this_thread::sleep_for(std::chrono::milliseconds(options.at("idle"))); }

void push(const char* endpoint, const Options& options) {
  const bool lingers = options.at("linger") != 0;
  Socket socket(ZMQ_PUSH, endpoint, options, !lingers);
  Pauses pauses(options);
  std::vector<char> message(options.at("size"));
  Head head{static_cast<std::uint64_t>(options.at("sender")), 0};
  for (const auto count = static_cast<std::uint64_t>(options.at("count")); head.number < count; head.number++) {
    fill(message, head);
    socket.send(message, 0);
    pauses.maybe();
  }
  std::puts("sent");
  std::fflush(stdout);
  if (!lingers) socket.await_peer();  // or the idle time were for connecting, and what is sent is dropped, rightly
  idle(options);
}

void pull(const char* endpoint, const Options& options) {
  Socket socket(ZMQ_PULL, endpoint, options);
  Pauses pauses(options);
  Order order(options);
  std::puts("ready");
  std::fflush(stdout);
  std::uint64_t received = 0;
  do {
    order.take(socket.receive(options.at("size")));
    received++;
    pauses.maybe();
  } while (!order.complete(options.at("count")));
  std::printf("received %lu\n", received);
  std::fflush(stdout);
  idle(options);
}

/// Both sides send first and read later: both rings and all queues fill up, and drain in both directions at once.
void both(const char* endpoint, const Options& options) {
  Socket socket(ZMQ_DEALER, endpoint, options, true);
  Order order(options);
  const auto count = static_cast<std::uint64_t>(options.at("count"));
  std::vector<char> message(options.at("size"));
  Head head{0, 0};
  const auto try_next = [&] {
    fill(message, head);
    const bool sent = socket.send(message, ZMQ_DONTWAIT);
    if (sent) head.number++;
    return sent;
  };
  socket.await_peer();
  // Blocked by a peer that does not read, and for a while, not only between two looks.
  for (int refused = 0; head.number < count && refused < 100;) {
    if (try_next()) {
      refused = 0;
    } else {
      refused += head.number > 0 ? 1 : 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::printf("blocked after %lu\n", head.number);
  std::fflush(stdout);
  while (head.number < count || !order.complete(count)) {
    const short wanted = static_cast<short>(ZMQ_POLLIN | (head.number < count ? ZMQ_POLLOUT : 0));
    zmq_pollitem_t item{socket.get(), 0, wanted, 0};
    check(zmq_poll(&item, 1, -1) >= 0, "zmq_poll");
    if ((item.revents & ZMQ_POLLIN) != 0) order.take(socket.receive(options.at("size")));
    if ((item.revents & ZMQ_POLLOUT) != 0) try_next();
  }
  std::puts("done");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: traffic push|pull|both ENDPOINT [name=value...]");
  const Options options = parse(argc, argv);
  const std::string role = argv[1];
  if (role == "push") {
    push(argv[2], options);
  } else if (role == "pull") {
    pull(argv[2], options);
  } else if (role == "both") {
    both(argv[2], options);
  } else {
    fail("no role " + role);
  }
}
