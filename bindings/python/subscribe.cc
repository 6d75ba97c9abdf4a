// SPDX-License-Identifier: Apache-2.0
// wherry.Subscriber and wherry.Message.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cerrno>
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
using Returns = LeaseReturns<Message>;

/// A received message. Its memory returns to the publisher on release, or with the last array that uses it.
class PythonMessage {
 public:
  PythonMessage(std::shared_ptr<Returns> returns, Message message, ReceivedArray array, ArrayType type)
      : returns_(std::move(returns)),
        message_(std::move(message)),
        is_array_(array.type.has_value()),
        buffer_(std::move(type), elements_of(message_, array)) {}
  ~PythonMessage() { give_back(); }
  PythonMessage(const PythonMessage&) = delete;
  PythonMessage& operator=(const PythonMessage&) = delete;

  int fill(Py_buffer* view, PyObject* self, int flags) noexcept {
    if (!message_.held()) {
      view->obj = nullptr;
      PyErr_SetString(PyExc_ValueError, "the message was released");
      return -1;
    }
    const int status = buffer_.fill(view, self, flags, false);
    if (status == 0) ++exports_;
    return status;
  }
  void begin_export() {
    if (!message_.held()) throw nb::value_error("the message was released");
    ++exports_;
  }
  void end_export() noexcept { --exports_; }

  void release() {
    if (exports_ != 0) throw nb::buffer_error("an array or a view still uses the message; delete it first");
    give_back();
  }
  [[nodiscard]] const ArrayType& type() const { return buffer_.type(); }
  [[nodiscard]] bool is_array() const noexcept { return is_array_; }
  [[nodiscard]] std::span<std::byte> elements() const noexcept { return buffer_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return buffer_.data().size(); }
  [[nodiscard]] Peer publisher() const { return message_.publisher(); }

 private:
  static std::span<std::byte> elements_of(const Message& message, const ReceivedArray& array) {
    const std::span<const std::byte> bytes = message.bytes().subspan(array.offset);
    return {const_cast<std::byte*>(bytes.data()), array.type ? array.type->bytes() : bytes.size()};
  }
  void give_back() {
    if (message_.held()) returns_->give(std::move(message_));
  }

  std::shared_ptr<Returns> returns_;
  Message message_;
  bool is_array_;
  ArrayBuffer buffer_;
  Py_ssize_t exports_ = 0;
};

int get_message_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  return nb::inst_ptr<PythonMessage>(self)->fill(view, self, flags);
}
void release_message_buffer(PyObject* self, Py_buffer*) noexcept { nb::inst_ptr<PythonMessage>(self)->end_export(); }

PyType_Slot message_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_message_buffer)},
                               {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_message_buffer)},
                               {0, nullptr}};

class PythonSubscriber {
 public:
  PythonSubscriber(std::size_t queue, bool drop_oldest, bool prefault)
      : subscriber_(std::in_place, SubscriberOptions{.queue = queue,
                                                     .overflow = drop_oldest ? Overflow::drop_oldest : Overflow::wait,
                                                     .prefault = prefault}) {}
  Subscriber& subscriber(const char* operation) {
    if (!subscriber_ || generation_ != fork_generation()) raise_result(Result::failure(EBADF), operation, "");
    return *subscriber_;
  }
  LeaseTurn<Message> begin(const Deadline& deadline, const char* operation) {
    (void)subscriber(operation);
    return {*returns_, deadline, operation};
  }
  /// Null: the call would block.
  std::unique_ptr<PythonMessage> take(const Deadline& deadline, bool may_block, const char* operation) {
    const LeaseTurn<Message> turn = begin(deadline, operation);
    Subscriber& subscriber = this->subscriber(operation);
    Message message;
    Result result = subscriber.try_take(message);
    if (result.would_block() && may_block) {
      result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
        returns_->release_waiting();
        return subscriber.take(message, slice);
      });
    }
    if (result.would_block()) return nullptr;
    if (result.failed()) raise_result(result, operation, subscriber.local().to_string());
    if (result.ended()) {
      PyErr_SetString(PyExc_EOFError, "no publisher is connected, and none can connect");
      throw nb::python_error();
    }
    auto array = read_array(message.bytes());
    if (!array) raise_result(Result::failure(EPROTO), operation, message.publisher().address.to_string());
    ArrayType type = array->type.value_or(ArrayType{.shape = {static_cast<Py_ssize_t>(message.bytes().size())}});
    return std::make_unique<PythonMessage>(returns_, std::move(message), std::move(*array), std::move(type));
  }
  void cancel() { subscriber("cancel").cancel(); }
  void close() {
    if (!subscriber_) return;
    if (generation_ == fork_generation()) {
      subscriber_->cancel();
      const Taken taken = take_turn(returns_->turn, Deadline(std::nullopt), "close");
      subscriber_.reset();
    } else {
      subscriber_.reset();
    }
  }
  [[nodiscard]] bool is_closed() const noexcept { return !subscriber_; }

 private:
  std::shared_ptr<Returns> returns_ = std::make_shared<Returns>();
  std::optional<Subscriber> subscriber_;
  std::uint32_t generation_ = fork_generation();
};

/// The buffer of a message's ndarray. An ndarray keeps its buffer's owner alive, but not the buffer. While this object
/// exists, the message cannot be released.
class MessageBytes {
 public:
  explicit MessageBytes(nb::object owner) : owner_(std::move(owner)), message_(nb::inst_ptr<PythonMessage>(owner_)) {
    message_->begin_export();
  }
  ~MessageBytes() { message_->end_export(); }
  MessageBytes(const MessageBytes&) = delete;
  MessageBytes& operator=(const MessageBytes&) = delete;

  int fill(Py_buffer* view, PyObject* self, int flags) const noexcept {
    const std::span<std::byte> bytes = message_->elements();
    return PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 1, flags);
  }

 private:
  nb::object owner_;
  PythonMessage* message_;
};

int get_bytes_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  return nb::inst_ptr<MessageBytes>(self)->fill(view, self, flags);
}

PyType_Slot bytes_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_bytes_buffer)}, {0, nullptr}};

nb::object array_of(nb::handle self) {
  auto bytes = std::make_unique<MessageBytes>(nb::borrow(self));
  return array_over(nb::cast(std::move(bytes)), nb::inst_ptr<PythonMessage>(self)->type());
}

nb::object shape_of(const PythonMessage& self) {
  nb::list shape;
  for (const Py_ssize_t count : self.type().shape) shape.append(count);
  return nb::tuple(shape);
}

void bind_message(nb::module_& module) {
  const nb::class_<MessageBytes> bytes(module, "_MessageBytes", nb::type_slots(bytes_slots));
  nb::class_<PythonMessage>(module, "Message", nb::type_slots(message_slots), nb::is_weak_referenceable(),
                            "A received message, read in place: a buffer, and a source of DLPack. Its memory returns "
                            "to the publisher with the last array that uses it, or by release.")
      .def_prop_ro("array", &array_of, nb::sig("def array(self) -> numpy.typing.NDArray[typing.Any]"),
                   "The message as a read-only ndarray, without a copy, of the sender's dtype and shape. If the sender "
                   "sent no array: an array of bytes.")
      .def_prop_ro(
          "dtype", [](const PythonMessage& self) { return nb::str(self.type().dtype.c_str()); },
          nb::sig("def dtype(self) -> str"), "The dtype in numpy's notation, such as '<f8'.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("is_array", &PythonMessage::is_array, "Whether the message has an array header.")
      .def_prop_ro("publisher", &PythonMessage::publisher, "The process that published the message.")
      .def("__len__", &PythonMessage::size, "The size in bytes, without the header.")
      .def(
          "__dlpack__",
          [](nb::handle self, const nb::kwargs& options) { return array_of(self).attr("__dlpack__")(**options); },
          nb::sig("def __dlpack__(self, **options: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__", [](nb::handle self) { return array_of(self).attr("__dlpack_device__")(); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("release", &PythonMessage::release,
           "Returns the memory to the publisher. Raises BufferError while an array or a view uses it.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](PythonMessage& self, const nb::args&) { self.release(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace

void bind_subscribe(nb::module_& module) {
  bind_message(module);
  nb::class_<PythonSubscriber> type(
      module, "Subscriber", nb::is_weak_referenceable(),
      "Receives the messages of all connected publishers. Iterating takes them until the end.");
  type.def(nb::init<std::size_t, bool, bool>(), nb::kw_only(), "queue"_a = 16, "drop_oldest"_a = false,
           "prefault"_a = false,
           "queue: the number of messages of one publisher that may wait or be held here. drop_oldest: a full queue "
           "loses its oldest message; otherwise the publisher waits.")
      .def(
          "take", [](PythonSubscriber& self, Seconds timeout) { return self.take(Deadline(timeout), true, "take"); },
          "timeout"_a = nb::none(), "Blocks until there is a message. Raises EOFError at the end.")
      .def(
          "try_take", [](PythonSubscriber& self) { return self.take(Deadline(0.0), false, "try_take"); },
          nb::sig("def try_take(self) -> Message | None"), "Takes a message without blocking. None: no message now.")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> typing.Self"))
      .def("__next__", [](PythonSubscriber& self) {
        try {
          return self.take(Deadline(std::nullopt), true, "take");
        } catch (nb::python_error& error) {
          if (error.matches(PyExc_EOFError)) throw nb::stop_iteration();
          throw;
        }
      });
  bind_joining(type,
               [](PythonSubscriber& self, const char* operation) -> Subscriber& { return self.subscriber(operation); });
  type.def_prop_ro(
          "publishers", [](PythonSubscriber& self) { return self.subscriber("publishers").publishers(); },
          "The number of connected publishers, as far as is known.")
      .def_prop_ro(
          "dropped", [](PythonSubscriber& self) { return self.subscriber("dropped").dropped(); },
          "The number of messages lost to drop_oldest.");
}

}  // namespace wherry::python
