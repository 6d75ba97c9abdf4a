// SPDX-License-Identifier: Apache-2.0
// An intrusive list: it allocates nothing, and an element leaves it without a search.
#pragma once

#include <cassert>
#include <cstddef>

namespace wherry::mpi {

struct Hook {
  Hook* previous = nullptr;
  Hook* next = nullptr;

  [[nodiscard]] bool is_linked() const { return next != nullptr; }
  void unlink() {
    previous->next = next;
    next->previous = previous;
    previous = next = nullptr;
  }
};

/// Elements derive from Hook and are in at most one list, which does not own them.
template <class Element>
class List {
 public:
  List() { head_.previous = head_.next = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() = default;

  [[nodiscard]] bool empty() const { return head_.next == &head_; }
  [[nodiscard]] Element* front() { return empty() ? nullptr : static_cast<Element*>(head_.next); }
  void push_back(Element& element) {
    Hook& hook = element;
    assert(!hook.is_linked());
    hook.previous = head_.previous;
    hook.next = &head_;
    head_.previous->next = &hook;
    head_.previous = &hook;
  }
  Element* pop_front() {
    Element* element = front();
    if (element != nullptr) element->Hook::unlink();
    return element;
  }
  /// Returns the first element for which `fits` is true, or null. `fits` may unlink its argument if it then returns
  /// true.
  template <class Fits>
  Element* find(Fits&& fits) {
    for (Hook* hook = head_.next; hook != &head_;) {
      auto* element = static_cast<Element*>(hook);
      hook = hook->next;
      if (fits(*element)) return element;
    }
    return nullptr;
  }
  /// `visit` may unlink its argument.
  template <class Visit>
  void for_each(Visit&& visit) {
    find([&](Element& element) {
      visit(element);
      return false;
    });
  }

 private:
  Hook head_;
};

}  // namespace wherry::mpi
