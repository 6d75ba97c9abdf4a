// SPDX-License-Identifier: Apache-2.0
// wherry.Publisher.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "bindings/python/array.hpp"
#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"
#include "bindings/python/joining.hpp"
#include "bindings/python/lease.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

using Seconds = std::optional<double>;

/// State that loans share with their publisher. Loans keep it alive after the publisher is gone.
struct Pool {
  explicit Pool(PublisherOptions options) : publisher(std::in_place, options) {}

  LeaseReturns<Loan> returns;
  std::optional<Publisher> publisher;
  std::atomic<int> published{0};  ///< published loans whose arrays still exist
  Loan anchor;                    ///< keeps the pool mapped for them after the publisher was closed
  std::uint32_t generation = fork_generation();
};

/// The memory of a loan, for an ndarray. It stays mapped as long as this object exists, published or not.
class PythonLoan {
 public:
  PythonLoan(std::shared_ptr<Pool> pool, Loan loan, std::optional<ArrayType> type)
      : pool_(std::move(pool)), loan_(std::move(loan)), type_(std::move(type)), message_(loan_.bytes()) {}
  ~PythonLoan() {
    if (is_published_) pool_->published.fetch_sub(1);
    if (loan_.held()) pool_->returns.give(std::move(loan_));
  }
  PythonLoan(const PythonLoan&) = delete;
  PythonLoan& operator=(const PythonLoan&) = delete;

  [[nodiscard]] std::span<std::byte> elements() const noexcept {
    return message_.subspan(type_ ? sizeof(layout::ArrayHeader) : 0);
  }
  [[nodiscard]] bool is_of(const std::shared_ptr<Pool>& pool) const noexcept { return pool_ == pool; }
  [[nodiscard]] bool is_published() const noexcept { return is_published_; }
  Loan& to_publish() noexcept {
    if (type_) {
      const layout::ArrayHeader header = header_of(*type_);
      std::memcpy(message_.data(), &header, sizeof header);
    }
    return loan_;
  }
  void set_published() noexcept {
    is_published_ = true;
    pool_->published.fetch_add(1);
  }

 private:
  std::shared_ptr<Pool> pool_;
  Loan loan_;
  std::optional<ArrayType> type_;
  std::span<std::byte> message_;
  bool is_published_ = false;
};

int get_loan_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const std::span<std::byte> bytes = nb::inst_ptr<PythonLoan>(self)->elements();
  return PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 0, flags);
}

PyType_Slot loan_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_loan_buffer)}, {0, nullptr}};

/// Returns the loan whose memory the array uses, if the array covers all of it. Else null.
PythonLoan* loan_under(nb::handle array, std::span<const std::byte> elements) {
  const nb::object base = nb::getattr(array, "base", nb::none());
  PythonLoan* loan = nullptr;
  if (base.is_none() || !nb::try_cast(base, loan) || loan == nullptr) return nullptr;
  const std::span<const std::byte> own = loan->elements();
  return own.data() == elements.data() && own.size() == elements.size() ? loan : nullptr;
}

class PythonPublisher {
 public:
  PythonPublisher(std::size_t pool_bytes, bool prefault)
      : pool_(std::make_shared<Pool>(PublisherOptions{.pool_bytes = pool_bytes, .prefault = prefault})) {}
  ~PythonPublisher() { end(); }
  PythonPublisher(const PythonPublisher&) = delete;
  PythonPublisher& operator=(const PythonPublisher&) = delete;

  /// The C++ publisher. Throws Error(EBADF).
  Publisher& publisher(const char* operation) {
    if (closed_ || pool_->generation != fork_generation()) raise_result(Result::failure(EBADF), operation, "");
    return *pool_->publisher;
  }
  LeaseTurn<Loan> begin(const Deadline& deadline, const char* operation) {
    (void)publisher(operation);
    return {pool_->returns, deadline, operation};
  }

  nb::object loan(nb::handle shape, nb::handle dtype, Seconds timeout) {
    const Deadline deadline(timeout);
    ArrayType type = type_from(shape, dtype);
    const bool is_array = !dtype.is_none();
    const std::size_t bytes = type.bytes() + (is_array ? sizeof(layout::ArrayHeader) : 0);
    Loan loan = lend(bytes, deadline, "loan");
    const nb::object owner = nb::cast(
        std::make_unique<PythonLoan>(pool_, std::move(loan), is_array ? std::optional(type) : std::nullopt).release(),
        nb::rv_policy::take_ownership);
    return array_over(owner, type);
  }

  void publish(nb::handle data, Seconds timeout) {
    const Deadline deadline(timeout);
    const std::optional<ArrayType> type = type_of(data);
    const nb::object plain = type ? without_dates(data, *type) : nb::borrow(data);
    const Buffer elements(plain, Buffer::Use::read);
    PythonLoan* const loan = loan_under(data, elements.bytes());
    if (loan == nullptr || !loan->is_of(pool_)) return publish_copy(type, elements.bytes(), deadline);
    if (loan->is_published()) throw nb::value_error("the array was published already; loan another");
    publish_loan(loan->to_publish(), deadline);
    loan->set_published();
    data.attr("flags").attr("writeable") = false;
  }

  void cancel() { publisher("cancel").cancel(); }
  void close() {
    if (closed_) return;
    if (pool_->generation != fork_generation()) {
      end();
      return;
    }
    const bool is_idle = pool_->returns.turn.try_take();
    if (!is_idle) pool_->publisher->cancel();
    const Taken taken =
        is_idle ? Taken(pool_->returns.turn) : take_turn(pool_->returns.turn, Deadline(std::nullopt), "close");
    end();
  }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

 private:
  Loan lend(std::size_t bytes, const Deadline& deadline, const char* operation) {
    const LeaseTurn<Loan> turn = begin(deadline, operation);
    Publisher& publisher = this->publisher(operation);
    Loan loan;
    Result result = publisher.try_loan(loan, bytes);
    if (result.would_block()) {
      result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
        pool_->returns.release_waiting();
        return publisher.loan(loan, bytes, slice);
      });
    }
    if (result.failed()) raise_result(result, operation, publisher.local().to_string());
    return loan;
  }
  void publish_loan(Loan& loan, const Deadline& deadline) {
    const LeaseTurn<Loan> turn = begin(deadline, "publish");
    Publisher& publisher = this->publisher("publish");
    Result result = publisher.try_publish(loan);
    if (result.would_block()) {
      result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
        pool_->returns.release_waiting();
        return publisher.publish(loan, slice);
      });
    }
    if (result.failed()) raise_result(result, "publish", publisher.local().to_string());
  }
  void publish_copy(const std::optional<ArrayType>& type, std::span<const std::byte> elements,
                    const Deadline& deadline) {
    const std::size_t before = type ? sizeof(layout::ArrayHeader) : 0;
    Loan loan = lend(before + elements.size(), deadline, "publish");
    if (type) {
      const layout::ArrayHeader header = header_of(*type);
      std::memcpy(loan.bytes().data(), &header, sizeof header);
    }
    std::byte* const to = loan.bytes().data() + before;
    if (elements.size() <= kShortCopy) {
      std::copy(elements.begin(), elements.end(), to);
    } else {
      const Unlocked unlocked;
      std::copy(elements.begin(), elements.end(), to);
    }
    try {
      publish_loan(loan, deadline);
    } catch (...) {
      pool_->returns.give(std::move(loan));
      throw;
    }
  }
  /// Sends subscribers the end. If arrays of published loans exist and the pool has no memory for an anchor,
  /// subscribers get the end when the last of these arrays is gone.
  void end() noexcept {
    if (std::exchange(closed_, true) || !pool_->publisher) return;
    if (pool_->published.load() != 0 && pool_->generation == fork_generation() &&
        !pool_->publisher->try_loan(pool_->anchor, 1).ok()) {
      return;
    }
    pool_->publisher.reset();
  }

  std::shared_ptr<Pool> pool_;
  bool closed_ = false;
};

void bind_moving(nb::class_<PythonPublisher>& type) {
  type.def("loan", &PythonPublisher::loan, "shape"_a, "dtype"_a = nb::none(), nb::kw_only(), "timeout"_a = nb::none(),
           nb::sig("def loan(self, shape: int | typing.Sequence[int], dtype: numpy.typing.DTypeLike | None = None, *, "
                   "timeout: float | None = None) -> numpy.typing.NDArray[typing.Any]"),
           "Lends an array in the publisher's shared memory, to fill and to publish. It contains bytes of an earlier "
           "message. Without a dtype: bytes, which are sent without a header. Blocks while the pool is in use. An "
           "array that is not published returns its memory when it is deleted.")
      .def("publish", &PythonPublisher::publish, "data"_a, "timeout"_a = nb::none(),
           nb::sig("def publish(self, data: Buffer, timeout: float | None = None) -> None"),
           "Publishes an array of loan to every subscriber; it must not be written afterwards. Other data is copied: "
           "an ndarray with its dtype and shape, other buffers as bytes. Blocks while a subscriber's queue is full.");
}

}  // namespace

void bind_publish(nb::module_& module) {
  const nb::class_<PythonLoan> loan(module, "_Loan", nb::type_slots(loan_slots));
  nb::class_<PythonPublisher> type(module, "Publisher", nb::is_weak_referenceable(),
                                   "Publishes messages to all connected subscribers, without a copy.");
  type.def(nb::init<std::size_t, bool>(), nb::kw_only(), "pool_bytes"_a = 0, "prefault"_a = false,
           "pool_bytes: bytes of all messages that are loaned, waiting or being read; 0: the configured size "
           "(WHERRY_POOL). prefault: touch the whole pool now.");
  bind_moving(type);
  bind_joining(type,
               [](PythonPublisher& self, const char* operation) -> Publisher& { return self.publisher(operation); });
  type.def_prop_ro(
          "subscribers", [](PythonPublisher& self) { return self.publisher("subscribers").subscribers(); },
          "The number of connected subscribers, as far as is known.")
      .def_prop_ro("pool_bytes", [](PythonPublisher& self) { return self.publisher("pool_bytes").pool_bytes(); });
}

}  // namespace wherry::python
