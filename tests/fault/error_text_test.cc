// SPDX-License-Identifier: Apache-2.0
// What errors say while a connection is set up, each with its cause forced: the text names that cause and what to do.
// error_text_calls_test.cc has those of calls that are wrong by themselves; tests/rules/error_texts.py sees
// to it that none is missing.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <wherry/wherry.hpp>

#include "arch/barrier.hpp"
#include "base/scoped_environment.hpp"
#include "fabric/fabric.hpp"
#include "fabric/shm/memory.hpp"
#include "fabric/shm/socket_names.hpp"
#include "stream/handshake.hpp"
#include "tests/common/other_user.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/fault/error_text.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

using fabric::shm::SocketName;
using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

SocketName name_of(const Address& address) { return fabric::shm::socket_name(*address.node, *address.port); }

std::string connect_text(const Address& address) {
  return text_of([&] { (void)connect(address.to_string(), {}, kTimeout); });
}

class ErrorText : public FaultTest {
 protected:
  ErrorText() : listener_(listen(address())) {}

  [[nodiscard]] std::string where() const { return listener_.local().to_string(); }
  /// A port that is not taken.
  [[nodiscard]] static Address free_port() { return listen(address()).local(); }

  Listener listener_;
};

TEST_F(ErrorText, OfAPortThatIsTakenNamesWhoHasIt) {
  const std::string again = ": Address already in use; ";
  EXPECT_THAT(
      text_of([&] { (void)listen(where()); }),
      HasSubstr(again + "this process, which listens there already, has this port; use another port, or * for a "
                        "free one"));
  EXPECT_THAT(text_elsewhere([&] { (void)listen(where()); }),
              HasSubstr(again + "process " + std::to_string(::getpid()) + " of user " + std::to_string(::geteuid()) +
                        " has this port"));
  const Address held = free_port();
  const UniqueFd bound = fabric::shm::make_socket("test", "");
  const SocketName name = name_of(held);
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
  EXPECT_THAT(text_of([&] { (void)listen(held.to_string()); }),
              HasSubstr(again + "somebody who does not listen yet has this port"));
}

/// Where this process looks for listeners, as a text of a refused connect says it.
std::string own_place(const std::string& job) {
  struct stat network{};
  EXPECT_EQ(::stat("/proc/thread-self/ns/net", &network), 0);
  return " as user " + std::to_string(::geteuid()) + ", job '" + job + "', network namespace " +
         std::to_string(network.st_ino);
}

TEST_F(ErrorText, OfConnectingInVainSaysWhereItLooked) {
  const Address nobody = free_port();
  EXPECT_THAT(text_elsewhere([&] { (void)start_connect(nobody.to_string(), {}, 0s); }),
              HasSubstr(": Connection refused; nobody listens on port " + std::to_string(*nobody.port) + " of node 0" +
                        own_place(std::getenv("WHERRY_JOB")) + "; "));
}

/// Connects to an address without a listener until the error names a listener elsewhere, and returns that error's text.
/// One attempt is not enough: this process looks for such listeners once a second at most.
std::string text_that_names_a_listener(const std::string& address) {
  while (true) {
    std::string said = text_of([&] { (void)start_connect(address, {}, 0s); });
    if (said.find("to reach the one") != std::string::npos) return said;
    std::this_thread::yield();
  }
}

/// The same in a process of its own.
std::string text_of_who_looks(const std::string& address) {
  return text_elsewhere([&] { throw Error(0, text_that_names_a_listener(address), "", ""); });
}

TEST_F(ErrorText, OfConnectingInVainWhereNobodyListensSaysWhatToDo) {
  const ScopedEnvironment job("WHERRY_JOB", "nobodys");
  EXPECT_THAT(text_of([&] { (void)start_connect("wherry+shm://0:2996", {}, 0s); }),
              HasSubstr(own_place("nobodys") + "; start the listener first, as the same user, with the same WHERRY_JOB "
                                               "and in the same network namespace"));
}

TEST_F(ErrorText, OfAListenerOfAnotherUserNamesThatUser) {
  if (!may_be_another_user()) GTEST_SKIP() << "only root can be another user";
  const std::string wanted = "wherry+shm://0:2994";  // no port that other tests are given
  const SharedValue<std::atomic<bool>> listens;
  const Child other = as_other_user([&] {
    const Listener listener = listen(wanted);
    *listens = true;
    while (true) ::pause();
    return true;
  });
  while (!*listens) std::this_thread::yield();
  EXPECT_THAT(text_of_who_looks(wanted), HasSubstr("; start the listener first, or, to reach the one of user " +
                                                   std::to_string(kOtherUser) + ", run both sides as one user"));
}

TEST_F(ErrorText, OfAListenerInAnotherJobNamesTheJob) {
  const std::string own = std::getenv("WHERRY_JOB");
  const Listener listener = listen("wherry+shm://0:2997");
  const ScopedEnvironment job("WHERRY_JOB", "another-one");
  EXPECT_THAT(text_of_who_looks("wherry+shm://0:2997"),
              HasSubstr(", or, to reach the one in job '" + own + "', set WHERRY_JOB=" + own));
}

TEST_F(ErrorText, OfAListenerInAnotherNetworkNamespaceNamesAProcessThere) {
  const SharedValue<std::atomic<int>> port;
  const Child other([&] {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      *port = -1;
      return false;
    }
    const Listener listener = listen("wherry+shm://*:2999");
    *port = *listener.local().port;
    while (true) ::pause();
    return true;
  });
  while (*port == 0) std::this_thread::yield();
  if (*port < 0) GTEST_SKIP() << "no network namespaces here";
  const std::string process = std::to_string(other.pid());
  struct stat network{};
  ASSERT_EQ(::stat(("/proc/" + process + "/ns/net").c_str(), &network), 0);
  EXPECT_THAT(text_of_who_looks("wherry+shm://0:2999"),
              HasSubstr(", or, to reach the one in network namespace " + std::to_string(network.st_ino) +
                        " (that of process " + process + "), share that network namespace (docs/containers.md)"));
}

/// The advice outlives the look that found it, which is not made for each attempt.
TEST_F(ErrorText, OfAConnectThatIsTriedAgainSaysTheSameEachTime) {
  const Listener listener = listen("wherry+shm://0:2995");
  const ScopedEnvironment job("WHERRY_JOB", "another-one");
  EXPECT_THAT(text_elsewhere([] {
                (void)text_that_names_a_listener("wherry+shm://0:2995");
                (void)start_connect("wherry+shm://0:2995", {}, 0s);
              }),
              HasSubstr(", or, to reach the one in job '"));
}

TEST_F(ErrorText, OfANameThatAnotherUserHoldsNamesThatUser) {
  if (!may_be_another_user()) GTEST_SKIP() << "only root can be another user";
  const Address wanted = free_port();
  const SharedValue<std::atomic<bool>> listens;
  const Child thief = as_other_user([&, name = name_of(wanted)] {
    const UniqueFd socket = fabric::shm::make_socket("test", "");
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) return false;
    *listens = ::listen(socket.get(), 8) == 0;
    while (true) ::pause();
    return true;
  });
  while (!*listens) std::this_thread::yield();
  EXPECT_THAT(connect_text(wanted), HasSubstr(": Permission denied; user " + std::to_string(kOtherUser) +
                                              " holds this name; choose another WHERRY_JOB"));
}

TEST_F(ErrorText, OfARefusedSystemCallNamesTheCallAndNotALimit) {
  const std::string where = this->where();
  const auto listening = [] { (void)listen("wherry+shm://*:*"); };
  const auto connecting = [&] { (void)start_connect(where); };
  const auto polling = [] { (void)Poller(); };
  const auto publishing = [] { Publisher().listen(address()); };
  struct Refused {
    const char* name;
    long call;
    std::function<void()> cause;
  };
  const Refused all[] = {{"memfd_create", SYS_memfd_create, connecting},
                         {"memfd_create", SYS_memfd_create, publishing},
                         {"eventfd", SYS_eventfd2, polling},
                         {"epoll_create1", SYS_epoll_create1, connecting},
                         {"epoll_create1", SYS_epoll_create1, polling},
                         {"epoll_create1", SYS_epoll_create1, listening},
                         {"epoll_ctl", SYS_epoll_ctl, listening},
                         {"socket", SYS_socket, listening},
                         {"bind", SYS_bind, listening},
                         {"listen", SYS_listen, listening},
                         {"connect", SYS_connect, connecting},
                         {"getsockopt", SYS_getsockopt, connecting},
                         {"sendmsg", SYS_sendmsg, connecting},
                         {"getrandom", SYS_getrandom, connecting}};
  for (const Refused& refused : all) {
    for (const int error : {EPERM, ENOSYS}) {
      EXPECT_THAT(text_elsewhere([&] {
                    refuse_calls({refused.call}, error);
                    refused.cause();
                  }),
                  HasSubstr(std::string(": ") + std::strerror(error) + "; this system does not permit " + refused.name +
                            "; if this is a container or a sandbox, its seccomp profile must"))
          << refused.name;
    }
  }
  EXPECT_THAT(text_elsewhere([&] {
                refuse_calls({SYS_getsockopt}, EPERM);
                connecting();
              }),
              HasSubstr("read the peer's credentials: Operation not permitted"));
}

TEST_F(ErrorText, OfWhatTheKernelHasNoMoreOfNamesIt) {
  const std::string where = this->where();
  const auto with = [&](long call, int error) {
    return text_elsewhere([&] {
      refuse_calls({call}, error);
      (void)start_connect(where);
    });
  };
  const auto listening = [] {
    refuse_calls({SYS_epoll_ctl}, ENOSPC);
    (void)listen(address());
  };
  EXPECT_THAT(with(SYS_memfd_create, EMFILE), HasSubstr("raise the limit of open files (ulimit -n), or close streams"));
  EXPECT_THAT(with(SYS_memfd_create, ENFILE),
              HasSubstr("the whole system has too many open files; close some, or raise fs.file-max"));
  EXPECT_THAT(with(SYS_socket, ENOBUFS),
              HasSubstr("socket found no memory; free some, or raise the limit of the memory cgroup"));
  EXPECT_THAT(text_elsewhere(listening),
              HasSubstr("this user watches too many descriptors; raise fs.epoll.max_user_watches"));
  EXPECT_THAT(with(SYS_sendmsg, ETOOMANYREFS),
              HasSubstr("too many descriptors are on their way between processes; accept faster, or raise ulimit -n"));
  EXPECT_THAT(with(SYS_socket, EAFNOSUPPORT),
              HasSubstr("socket failed; `wherry doctor` checks what this machine permits"));
}

TEST_F(ErrorText, OfMemoryThatIsMissingAtAcceptIsNotThatNobodyCame) {
  if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0) GTEST_SKIP() << "needs a limit of addresses";
  const auto accepting = [] {
    Listener listener = listen(address(), {.ring_bytes = kPage});
    const Child connector([&] {
      const Connecting large = start_connect(listener.local().to_string(), {.ring_bytes = 1UL << 30});
      while (true) ::pause();
      return true;
    });
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * kPage + (1UL << 29);
    const rlimit addresses{.rlim_cur = most, .rlim_max = most};
    ::setrlimit(RLIMIT_AS, &addresses);
    (void)listener.accept(kTimeout);
  };
  EXPECT_THAT(text_elsewhere(accepting),
              HasSubstr(": Cannot allocate memory; raise the address space limit (ulimit -v), or use smaller rings or "
                        "pools"));
}

TEST_F(ErrorText, OfADeadlineSaysWhoDidNotCome) {
  EXPECT_THAT(text_of([&] { (void)listener_.accept(0ms); }), HasSubstr("nobody connected in time"));
  EXPECT_THAT(text_of([&] { (void)connect(where(), {}, 0ms); }),
              HasSubstr("somebody listens there but did not accept in time; wait longer (WHERRY_CONNECT_TIMEOUT)"));
}

TEST_F(ErrorText, OfAStreamAndAPublisherThatMeetNamesTheOther) {
  Publisher publisher;
  publisher.listen(address());
  Connecting stream = start_connect(publisher.local().to_string());
  const auto finish = [&] {
    while (!stream.try_finish()) publisher.admit();
  };
  EXPECT_THAT(text_of(finish),
              HasSubstr("this port has a Publisher or a Subscriber; connect the other one to it, or use another port"));
}

TEST_F(ErrorText, OfAListenerThatClosesSaysSo) {
  Connecting waits = start_connect(where());
  listener_ = listen(address());
  EXPECT_THAT(text_of([&] {
                while (!waits.try_finish()) std::this_thread::yield();
              }),
              HasSubstr("the listener closed, or refused this connector (WHERRY_LOG=info there says why)"));
}

/// What a fabric's listener answers a stream that connects, and the error of that.
std::string answered(const fabric::Offer& offer) {
  const auto listener = fabric::find("shm").listen(Address::parse("wherry://*:*"));
  Connecting stream = start_connect(listener->local().to_string());
  const auto accepted = listener->try_accept(offer);
  return text_of([&] { (void)stream.try_finish(); });
}

TEST_F(ErrorText, OfAnotherVersionOrSomethingElseTellsOneFromTheOther) {
  fabric::Offer newer = stream::offer_of({.own = kPage});
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, newer.greeting.data(), sizeof greeting);
  greeting.version += 1;
  std::memcpy(newer.greeting.data(), &greeting, sizeof greeting);
  EXPECT_THAT(answered(newer),
              HasSubstr("the peer is no stream of this version of Wherry; use one version on both sides"));
  EXPECT_THAT(answered({.segment_bytes = kPage}),
              HasSubstr("the program at this port has no Wherry stream; use another port"));
}

/// The text of a stream that connects to a listener by hand, which answers so.
std::string answered_by_hand(const std::function<void(int)>& answer) {
  const Address address = listen("wherry+shm://*:*").local();
  const SocketName name = name_of(address);
  const UniqueFd listening = fabric::shm::make_socket("test", "");
  EXPECT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
  EXPECT_EQ(::listen(listening.get(), 2), 0);
  Connecting stream = start_connect(address.to_string());
  const UniqueFd companion(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  answer(socket.get());
  return text_of([&] { (void)stream.try_finish(); });
}

TEST_F(ErrorText, OfAnAnswerThatIsNoneOrCannotBeTrustedTellsThem) {
  EXPECT_THAT(answered_by_hand([](int socket) { (void)::send(socket, "hello", 5, 0); }),
              HasSubstr("the listener uses another version of Wherry; use one version on both sides"));
  const auto unsealed = [](int socket) {
    const UniqueFd memory(::memfd_create("test", MFD_CLOEXEC));
    layout::ShmHello hello{};
    hello.magic = layout::kShmMagic;
    hello.version = layout::kShmVersion;
    hello.segment_bytes = kPage;
    EXPECT_EQ(fabric::shm::send_packet(socket, hello, std::array{memory.get()}), 0);
  };
  EXPECT_THAT(answered_by_hand(unsealed),
              HasSubstr("it is not a sealed memfd of the size announced; the connection is refused"));
}

TEST_F(ErrorText, OfMemoryThatCannotBeMadeNamesTheLimit) {
  if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0) GTEST_SKIP() << "needs a limit of addresses";
  const auto limited_to = [](int resource, rlim_t bytes) {
    const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
    ::setrlimit(resource, &limit);
  };
  EXPECT_THAT(text_elsewhere([&] {
                limited_to(RLIMIT_AS, 1UL << 29);
                (void)start_connect(where(), {.ring_bytes = 1UL << 30});
              }),
              HasSubstr("use a smaller ring, or raise the address space limit (ulimit -v)"));
  EXPECT_THAT(text_elsewhere([&] {
                limited_to(RLIMIT_AS, 1UL << 29);
                Publisher({.pool_bytes = 1UL << 30}).listen(address());
              }),
              HasSubstr("ask for less, or raise the address space limit (ulimit -v)"));
  EXPECT_THAT(text_elsewhere([&] {
                ::signal(SIGXFSZ, SIG_IGN);
                limited_to(RLIMIT_FSIZE, 1UL << 20);
                (void)start_connect(where(), {.ring_bytes = kPage, .windows = true});
              }),
              HasSubstr("raise the limit of file sizes (ulimit -f)"));
  EXPECT_THAT(text_elsewhere([&] {
                limited_to(RLIMIT_FSIZE, 1UL << 20);
                (void)start_connect(where(), {.ring_bytes = 1UL << 21});
              }),
              HasSubstr("raise the limit of file sizes (ulimit -f), or ask for less (WHERRY_RING, WHERRY_POOL)"));
}

TEST_F(ErrorText, OfADescriptorThatCannotBePolledSaysWhy) {
  Poller poller;
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(text_of([&] { poller.add(file.get(), 1); }),
              HasSubstr("a file of this kind is always ready: there is nothing to wait for"));
  EXPECT_THAT(text_of([&] { poller.add(-1, 1); }), HasSubstr("it must be open"));
}

}  // namespace
}  // namespace wherry::fault
