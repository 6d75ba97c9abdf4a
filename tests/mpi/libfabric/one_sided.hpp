// SPDX-License-Identifier: Apache-2.0
// An endpoint of libfabric's with what one-sided operations need, and two of them for tests.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace one_sided {

// Before libfabric is used for the first time.
inline const bool provider_is_found = [] {
  ::setenv("FI_PROVIDER_PATH", PROVIDER_FOLDER, 1);
  ::setenv("FI_PROVIDER", "wherry", 1);
  return true;
}();

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;
using Name = std::array<char, 64>;

struct Asked {
  std::uint64_t caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
  int mr_mode = 0;
  std::uint64_t completion = 0;  ///< FI_SELECTIVE_COMPLETION
  fi_wait_obj wait = FI_WAIT_NONE;
};

inline Info offered(const Asked& asked) {
  const Info hints(fi_allocinfo(), fi_freeinfo);
  hints->caps = asked.caps;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = asked.mr_mode;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  fi_info* found = nullptr;
  fi_getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints.get(), &found);
  return {found, fi_freeinfo};
}

inline void check(ssize_t status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-status)));
}

template <class Object>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { close(); }
  void close() {
    EXPECT_EQ(object == nullptr ? 0 : fi_close(&object->fid), 0);
    object = nullptr;
  }
  Object* operator->() { return object; }
  Object* object = nullptr;
};

/// An endpoint, and 1 MiB that it lends to others by the key 5.
class Side {
 public:
  explicit Side(const Asked& asked = {}) : info_(offered(asked)) {
    check(info_ == nullptr ? -FI_ENODATA : 0, "fi_getinfo");
    check(fi_fabric(info_->fabric_attr, &fabric.object, nullptr), "fi_fabric");
    check(fi_domain(fabric.object, info_.get(), &domain.object, nullptr), "fi_domain");
    open_queues(asked);
    fi_av_attr addresses{};
    check(fi_av_open(domain.object, &addresses, &av.object, nullptr), "fi_av_open");
    check(fi_endpoint(domain.object, info_.get(), &ep.object, nullptr), "fi_endpoint");
    check(fi_ep_bind(ep.object, &av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(ep.object, &cq->fid, FI_TRANSMIT | FI_RECV | asked.completion), "fi_ep_bind");
    check(fi_ep_bind(ep.object, &initiated->fid, FI_READ | FI_WRITE), "fi_ep_bind");
    check(fi_ep_bind(ep.object, &targeted->fid, FI_REMOTE_READ | FI_REMOTE_WRITE), "fi_ep_bind");
    check(fi_enable(ep.object), "fi_enable");
    lend(FI_REMOTE_READ | FI_REMOTE_WRITE);
  }

  void lend(std::uint64_t access) {
    region.close();
    check(fi_mr_reg(domain.object, memory.data(), memory.size(), access, 0, 5, 0, &region.object, nullptr),
          "fi_mr_reg");
  }
  Name name() {
    Name text{};
    std::size_t bytes = text.size();
    check(fi_getname(&ep->fid, text.data(), &bytes), "fi_getname");
    return text;
  }
  fi_addr_t know(const Name& other) {
    fi_addr_t address = FI_ADDR_UNSPEC;
    if (fi_av_insert(av.object, other.data(), 1, &address, 0, nullptr) != 1) throw std::runtime_error("fi_av_insert");
    return address;
  }
  /// What fi_cq_read says, once it is not that there is nothing.
  ssize_t next(Side& other, fi_cq_tagged_entry& entry) {
    while (true) {
      const ssize_t got = fi_cq_read(cq.object, &entry, 1);
      if (got != -FI_EAGAIN) return got;
      fi_cq_read(other.cq.object, nullptr, 0);
    }
  }
  fi_cq_tagged_entry next(Side& other) {
    fi_cq_tagged_entry entry{};
    check(next(other, entry), "fi_cq_read");
    return entry;
  }
  int next_error(Side& other) {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(next(other, entry), -FI_EAVAIL);
    fi_cq_err_entry error{};
    check(fi_cq_readerr(cq.object, &error, 0), "fi_cq_readerr");
    return error.err;
  }

 private:
  void open_queues(const Asked& asked) {
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_TAGGED;
    completions.wait_obj = asked.wait;
    check(fi_cq_open(domain.object, &completions, &cq.object, nullptr), "fi_cq_open");
    fi_cntr_attr counted{};
    counted.wait_obj = asked.wait;
    for (auto* counter : {&initiated, &targeted, &changed}) {
      check(fi_cntr_open(domain.object, &counted, &counter->object, nullptr), "fi_cntr_open");
    }
  }

  Info info_;

 public:
  std::string memory = std::string(1 << 20, '.');
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_cq> cq;
  Owned<fid_cntr> initiated, targeted, changed;
  Owned<fid_av> av;
  Owned<fid_ep> ep;
  Owned<fid_mr> region;
};

class OneSided : public testing::Test {
 protected:
  explicit OneSided(const Asked& asked = {}) : a_(asked), b_(asked), to_(a_.know(b_.name())) {}
  /// The text is kept until the end of the test.
  ssize_t write(std::string its_text, std::uint64_t address, std::uint64_t key = 5) {
    const std::string& text = kept_.emplace_back(std::move(its_text));
    return fi_write(a_.ep.object, text.data(), text.size(), nullptr, to_, address, key, this);
  }

  std::deque<std::string> kept_;
  Side a_, b_;
  fi_addr_t to_;
};

}  // namespace one_sided
