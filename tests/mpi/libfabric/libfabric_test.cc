// SPDX-License-Identifier: Apache-2.0
// What a program of libfabric's sees: the provider is found, refuses what it has not, and moves messages between
// processes, one of which may be killed.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/common/seccomp.hpp"

namespace {

using wherry::refuse;

// Before libfabric is used for the first time.
[[maybe_unused]] const bool provider_is_found = [] {
  ::setenv("FI_PROVIDER_PATH", PROVIDER_FOLDER, 1);
  ::setenv("FI_PROVIDER", "wherry", 1);
  return true;
}();

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

Info hints() {
  Info result(fi_allocinfo(), fi_freeinfo);
  result->caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  result->mode = FI_CONTEXT | FI_CONTEXT2;
  result->ep_attr->type = FI_EP_RDM;
  result->tx_attr->msg_order = FI_ORDER_SAS;
  result->rx_attr->msg_order = FI_ORDER_SAS;
  result->tx_attr->op_flags = FI_COMPLETION;
  result->domain_attr->threading = FI_THREAD_DOMAIN;
  result->domain_attr->av_type = FI_AV_MAP;
  result->domain_attr->cq_data_size = 4;
  return result;
}

Info offered(const fi_info* asked) {
  fi_info* found = nullptr;
  fi_getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, asked, &found);
  return {found, fi_freeinfo};
}

void check(ssize_t status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-status)));
}

template <class Object>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object != nullptr) fi_close(&object->fid);
  }
  Object* object = nullptr;
};

// Endpoints of one process with one queue. Each reaches that at the other end of a socket.
class Side {
 public:
  explicit Side(int socket) : info_(offered(hints().get())) {
    check(info_ == nullptr ? -FI_ENODATA : 0, "fi_getinfo");
    check(fi_fabric(info_->fabric_attr, &fabric_.object, nullptr), "fi_fabric");
    check(fi_domain(fabric_.object, info_.get(), &domain_.object, nullptr), "fi_domain");
    fi_av_attr addresses{};
    check(fi_av_open(domain_.object, &addresses, &addresses_.object, nullptr), "fi_av_open");
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_TAGGED;
    completions.wait_obj = FI_WAIT_UNSPEC;
    check(fi_cq_open(domain_.object, &completions, &queue_.object, nullptr), "fi_cq_open");
    add(socket);
  }

  // One more endpoint on the same queue.
  void add(int socket) {
    Endpoint& endpoint = endpoints_.emplace_back();
    check(fi_endpoint(domain_.object, info_.get(), &endpoint.object, nullptr), "fi_endpoint");
    check(fi_ep_bind(endpoint.object, &addresses_.object->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(endpoint.object, &queue_.object->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(endpoint.object), "fi_enable");
    meet(endpoint, socket);
  }

  void send(const std::string& text, std::size_t by = 0) {
    start_send(text, by);
    next();
  }
  void start_send(const std::string& text, std::size_t by) {
    const Endpoint& endpoint = endpoints_[by];
    check(fi_tsend(endpoint.object, text.data(), text.size(), nullptr, endpoint.peer, 5, nullptr), "fi_tsend");
  }
  std::string receive(std::size_t most, std::size_t by = 0) {
    std::string buffer(most, ' ');
    post(buffer, by);
    buffer.resize(next().len);
    return buffer;
  }
  void post(std::string& buffer, std::size_t by = 0, void* context = nullptr) {
    const Endpoint& endpoint = endpoints_[by];
    check(fi_trecv(endpoint.object, buffer.data(), buffer.size(), nullptr, endpoint.peer, 5, 0, context), "fi_trecv");
  }
  fi_cq_tagged_entry next() {
    fi_cq_tagged_entry entry{};
    check(fi_cq_sread(queue_.object, &entry, 1, nullptr, -1), "fi_cq_sread");
    return entry;
  }
  int next_error() {
    fi_cq_tagged_entry entry{};
    if (fi_cq_sread(queue_.object, &entry, 1, nullptr, -1) != -FI_EAVAIL) return 0;
    fi_cq_err_entry error{};
    check(fi_cq_readerr(queue_.object, &error, 0), "fi_cq_readerr");
    return error.err;
  }

 private:
  struct Endpoint : Owned<fid_ep> {
    fi_addr_t peer = FI_ADDR_UNSPEC;
  };

  void meet(Endpoint& endpoint, int socket) {
    std::array<char, 64> name{};
    std::size_t bytes = 0;
    EXPECT_EQ(fi_getname(&endpoint.object->fid, nullptr, &bytes), -FI_ETOOSMALL);
    EXPECT_EQ(bytes, name.size());
    check(fi_getname(&endpoint.object->fid, name.data(), &bytes), "fi_getname");
    if (write(socket, name.data(), name.size()) != 64 || read(socket, name.data(), name.size()) != 64) _exit(9);
    if (fi_av_insert(addresses_.object, name.data(), 1, &endpoint.peer, 0, nullptr) != 1)
      throw std::runtime_error("fi_av_insert");
  }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> queue_;
  std::deque<Endpoint> endpoints_;
};

// A child that runs `act` with an endpoint; exit status 0 unless it throws. It ends with this process.
pid_t child(int socket, const std::function<void(Side&)>& act) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Side side(socket);
    act(side);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

class Libfabric : public testing::Test {
 protected:
  Libfabric() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()), 0); }
  ~Libfabric() override {
    for (const int socket : sockets_) close(socket);
  }
  std::array<int, 2> sockets_{};
};

TEST_F(Libfabric, FindsTheProviderWithoutHintsAndWithThoseOfAnMpi) {
  for (const Info& asked : {Info(nullptr, fi_freeinfo), hints()}) {
    const Info info = offered(asked.get());
    ASSERT_NE(info, nullptr);
    EXPECT_STREQ(info->fabric_attr->prov_name, "wherry");
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  }
}

TEST_F(Libfabric, IsToldNoWhereTheProviderHasNotWhatIsAskedFor) {
  const std::array<std::function<void(fi_info&)>, 7> asks{
      [](fi_info& info) { info.caps |= FI_HMEM; },
      [](fi_info& info) { info.caps |= FI_COLLECTIVE; },
      [](fi_info& info) { info.ep_attr->type = FI_EP_MSG; },
      [](fi_info& info) { info.domain_attr->data_progress = FI_PROGRESS_AUTO; },
      [](fi_info& info) { info.domain_attr->cq_data_size = 9; },
      [](fi_info& info) { info.tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAR; },
      [](fi_info& info) { info.tx_attr->inject_size = 1 << 20; },
  };
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const Info asked = hints();
    asks[i](*asked);
    EXPECT_EQ(offered(asked.get()), nullptr) << i;
  }
}

TEST_F(Libfabric, OffersPeersOnOtherMachinesOnlyToThoseThatAskForThem) {
  constexpr std::uint64_t kReach = FI_LOCAL_COMM | FI_REMOTE_COMM;
  const Info without = offered(nullptr);
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(without->caps & kReach, FI_LOCAL_COMM);
  EXPECT_EQ(without->domain_attr->caps & kReach, FI_LOCAL_COMM);
  // Open MPI takes no provider without it.
  const Info with = offered(hints().get());
  ASSERT_NE(with, nullptr);
  EXPECT_EQ(with->caps & kReach, kReach);
  EXPECT_EQ(with->domain_attr->caps & kReach, kReach);
}

TEST_F(Libfabric, ReturnsASourceAddressAndTakesItAsAHint) {
  const Info first = offered(hints().get());
  ASSERT_NE(first, nullptr);
  ASSERT_NE(first->src_addr, nullptr);
  const Info again = offered(first.get());
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(again->src_addrlen, first->src_addrlen);
  EXPECT_EQ(std::memcmp(again->src_addr, first->src_addr, first->src_addrlen), 0);
}

TEST_F(Libfabric, RefusesASourceAddressWithAPort) {
  const Info asked = offered(hints().get());
  ASSERT_NE(asked, nullptr);
  auto* const address = static_cast<char*>(asked->src_addr);
  const std::string beginning = "fi_wherry://00000:";
  ASSERT_TRUE(std::string(address).starts_with(beginning)) << address;
  address[beginning.size()] = '1';
  EXPECT_EQ(offered(asked.get()), nullptr);
  asked->src_addrlen = 3;
  EXPECT_EQ(offered(asked.get()), nullptr);
}

TEST_F(Libfabric, TakesOnlyThisMachineAsASource) {
  const auto offers = [](const char* node) {
    fi_info* found = nullptr;
    const int status = fi_getinfo(FI_VERSION(1, 9), node, "9228", FI_SOURCE, nullptr, &found);
    const bool has_source = status == 0 && found->src_addr != nullptr;
    fi_freeinfo(found);
    return has_source;
  };
  EXPECT_TRUE(offers("localhost"));
  EXPECT_TRUE(offers("127.0.0.1"));
  EXPECT_TRUE(offers(nullptr));
  EXPECT_FALSE(offers("elsewhere.example"));
}

TEST_F(Libfabric, IsToldNoWhereAVariableIsWrong) {
  ::setenv("WHERRY_MPI_EAGER", "1M", 1);
  const Info refused = offered(nullptr);
  ::unsetenv("WHERRY_MPI_EAGER");
  EXPECT_EQ(refused, nullptr);
}

TEST_F(Libfabric, IsToldNoWhereANetworkIsConfigured) {
  const Info info = offered(hints().get());
  ASSERT_NE(info, nullptr);
  ::setenv("WHERRY_FABRIC", "inproc-net", 1);
  testing::internal::CaptureStderr();
  Owned<fid_fabric> fabric;
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric.object, nullptr), -ENOTSUP);
  ::unsetenv("WHERRY_FABRIC");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("its peers cannot map each other's memory"), std::string::npos);
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric.object, nullptr), 0);
}

TEST_F(Libfabric, IsToldNoWhereAFileNamesOtherHosts) {
  const Info info = offered(hints().get());
  ASSERT_NE(info, nullptr);
  ::setenv("WHERRY_HOSTS", "/nonexistent/hosts", 1);
  testing::internal::CaptureStderr();
  Owned<fid_fabric> fabric;
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric.object, nullptr), -ENOTSUP);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("set WHERRY_FABRIC=shm"), std::string::npos);
  ::setenv("WHERRY_FABRIC", "shm", 1);
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric.object, nullptr), 0);
  ::unsetenv("WHERRY_FABRIC");
  ::unsetenv("WHERRY_HOSTS");
}

TEST_F(Libfabric, OffersToInjectWhatIsSentUnasked) {
  ::setenv("WHERRY_MPI_EAGER", "4K", 1);
  const Info lowered = offered(nullptr);
  const Info asked = hints();
  asked->tx_attr->inject_size = 8 << 10;
  const Info raised = offered(asked.get());
  ::unsetenv("WHERRY_MPI_EAGER");
  ASSERT_TRUE(lowered != nullptr && raised != nullptr);
  EXPECT_EQ(lowered->tx_attr->inject_size, 4U << 10);
  EXPECT_EQ(raised->tx_attr->inject_size, 8U << 10) << "a program may rely on what it has asked for";
  EXPECT_EQ(offered(nullptr)->tx_attr->inject_size, 16U << 10);
}

TEST_F(Libfabric, MessagesOfAllSizesGoBetweenProcesses) {
  const std::array<std::size_t, 6> sizes{0, 1, 4096, 20'000, 1 << 20, 5'000'001};
  const pid_t pid = child(sockets_[1], [&](Side& side) {
    for (const std::size_t size : sizes) side.send(side.receive(size));
  });
  {
    Side side(sockets_[0]);
    for (const std::size_t size : sizes) {
      std::string text(size, 'm');
      for (std::size_t i = 0; i < size; i += 97) text[i] = static_cast<char>('a' + i % 26);
      side.send(text);
      EXPECT_EQ(side.receive(size), text) << size;
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// A process that may not read this one's memory asks for the payload piece by piece, and may be read itself.
TEST_F(Libfabric, LongMessagesGoToAProcessThatMayNotReadOthersMemory) {
  const std::array<std::size_t, 4> sizes{16'385, 1 << 20, 5'000'001, 20'000};
  const pid_t pid = child(sockets_[1], [&](Side& side) {
    if (!refuse({SYS_process_vm_readv})) _exit(3);
    for (const std::size_t size : sizes) side.send(side.receive(size));
  });
  {
    Side side(sockets_[0]);
    for (const std::size_t size : sizes) {
      std::string text(size, 'n');
      for (std::size_t i = 0; i < size; i += 89) text[i] = static_cast<char>('a' + i % 26);
      side.send(text);
      EXPECT_EQ(side.receive(size), text) << size;
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(Libfabric, OneQueueServesSeveralEndpointsWhicheverHasSomething) {
  std::array<int, 2> others{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, others.data()), 0);
  constexpr int kRounds = 2000;
  // The child waits for an answer to each before the next: so the queue sleeps between them.
  const pid_t pid = child(sockets_[1], [&](Side& side) {
    side.add(others[1]);
    for (int i = 0; i < kRounds; ++i) {
      const std::size_t by = i / 3 % 2;
      const std::string text(i % 7 == 0 ? 30'000 : i % 500, static_cast<char>('a' + i % 26));
      side.send(text, by);
      if (side.receive(text.size(), by) != text) _exit(4);
    }
  });
  {
    Side side(sockets_[0]);
    side.add(others[0]);
    std::array<std::string, 2> buffers{std::string(30'000, ' '), std::string(30'000, ' ')};
    for (std::size_t by = 0; by < 2; ++by) side.post(buffers[by], by, &buffers[by]);
    std::deque<std::string> answers;
    for (int completions = 0; completions < 2 * kRounds; ++completions) {
      const fi_cq_tagged_entry entry = side.next();
      if (entry.op_context == nullptr) continue;
      const std::size_t by = answers.size() / 3 % 2;
      ASSERT_EQ(entry.op_context, &buffers[by]) << answers.size();
      answers.push_back(buffers[by].substr(0, entry.len));
      side.post(buffers[by], by, &buffers[by]);
      side.start_send(answers.back(), by);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  for (const int socket : others) close(socket);
}

TEST_F(Libfabric, AReceiveFromAProcessThatIsKilledFails) {
  const pid_t pid = child(sockets_[1], [&](Side& side) {
    side.send("hello");
    pause();
  });
  Side side(sockets_[0]);
  EXPECT_EQ(side.receive(5), "hello");
  std::string buffer(5, ' ');
  side.post(buffer);
  kill(pid, SIGKILL);
  EXPECT_EQ(side.next_error(), FI_ECONNRESET);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

}  // namespace
