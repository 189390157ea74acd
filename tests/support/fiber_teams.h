#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace cairn::tests {

/// Runs the threads of a GPU's team as coroutines, one after another from one sync to the next.
class FiberTeams {
 public:
  class Team {
   public:
    Team(FiberTeams& teams, int rank) : teams_(teams), rank_(rank) {}
    int rank() const { return rank_; }
    int size() const { return teams_.size_; }
    void sync() const { teams_.yield(); }
    template <class T, class Op>
    T reduce(T value, const Op& op) const {
      put(value);
      T result = at<T>(0);
      for (int i = 1; i < size(); ++i) result = op(result, at<T>(i));
      sync();
      return result;
    }
    template <class T>
    T scan(T value, T& total) const {
      put(value);
      T before{};
      total = T{};
      for (int i = 0; i < size(); ++i) {
        if (i == rank_) before = total;
        total = total + at<T>(i);
      }
      sync();
      return before;
    }
    template <class T>
    T* shared() const {
      return reinterpret_cast<T*>(teams_.shared_);
    }

   private:
    template <class T>
    void put(const T& value) const {
      static_assert(std::is_trivially_copyable_v<T>);
      static_assert(sizeof(T) <= kSlot);
      std::memcpy(teams_.slots_.data() + rank_ * kSlot, &value, sizeof(T));
      sync();
    }
    template <class T>
    T at(int i) const {
      T slot;
      std::memcpy(&slot, teams_.slots_.data() + i * kSlot, sizeof(T));
      return slot;
    }

    FiberTeams& teams_;
    int rank_;
  };

  FiberTeams() = default;
  ~FiberTeams() {
    for (const auto& fiber : fibers_) {
      if (fiber->stack) spare_stacks().push_back(std::move(fiber->stack));
    }
  }
  FiberTeams(const FiberTeams&) = delete;
  FiberTeams& operator=(const FiberTeams&) = delete;

  /// Calls body(team) once on each of `size` threads. Throws std::logic_error if some threads end while others wait.
  void run(int size, std::byte* shared, bool reverse, const std::function<void(const Team&)>& body) {
    size_ = size;
    shared_ = shared;
    slots_.resize(static_cast<std::size_t>(size) * kSlot);
    while (fibers_.size() < static_cast<std::size_t>(size)) fibers_.push_back(std::make_unique<Fiber>());
    body_ = &body;
    for (int rank = 0; rank < size; ++rank) start(rank);
    for (int done = 0; done < size;) {
      done = 0;
      for (int i = 0; i < size; ++i) {
        current_ = reverse ? size - 1 - i : i;
        Fiber& fiber = *fibers_[static_cast<std::size_t>(current_)];
        if (!fiber.done) go(scheduler_, fiber.at);
        done += fiber.done ? 1 : 0;
      }
      if (done != 0 && done != size) throw std::logic_error("some threads of a team left while others wait at a sync");
    }
  }

 private:
  static constexpr std::size_t kSlot = 128, kStack = 64 * 1024;
  /// The state of a coroutine.
  struct Place {
    ucontext_t context;  ///< where the coroutine begins
    jmp_buf jump;        ///< where the coroutine last switched away
    bool begun = false;
  };
  using Stack = std::unique_ptr<std::byte[]>;
  struct Fiber {
    Place at;
    Stack stack;
    bool done = true;
  };

  /// Stacks of destroyed FiberTeams, kept for reuse because many tests need a thousand threads. Pages of a stack that
  /// are never touched take no memory.
  static std::vector<Stack>& spare_stacks() {
    static thread_local std::vector<Stack> stacks;
    return stacks;
  }
  static Stack new_stack() {
    std::vector<Stack>& spare = spare_stacks();
    if (spare.empty()) return std::make_unique_for_overwrite<std::byte[]>(kStack);
    Stack stack = std::move(spare.back());
    spare.pop_back();
    return stack;
  }

  /// Leaves one coroutine and continues another. swapcontext makes a system call each time and is ten times as slow as
  /// _longjmp. It is used only where a sanitizer or glibc's checks reject jumps between stacks.
  static void go(Place& from, Place& to) {
#if defined(__SANITIZE_ADDRESS__) || (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
    swapcontext(&from.context, &to.context);
#else
    if (_setjmp(from.jump) != 0) return;
    if (std::exchange(to.begun, true)) _longjmp(to.jump, 1);
    setcontext(&to.context);
#endif
  }

  void start(int rank) {
    Fiber& fiber = *fibers_[static_cast<std::size_t>(rank)];
    if (std::exchange(fiber.done, false) && fiber.stack) return;  // the coroutine waits in enter() for its next body
    if (!fiber.stack) fiber.stack = new_stack();
    fiber.at.begun = false;
    getcontext(&fiber.at.context);
    fiber.at.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.at.context.uc_stack.ss_size = kStack;
    fiber.at.context.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fiber.at.context, reinterpret_cast<void (*)()>(&FiberTeams::enter), 2,
                static_cast<unsigned>(self & 0xFFFFFFFFU), static_cast<unsigned>(self >> 32));
  }

  [[noreturn]] static void enter(unsigned low, unsigned high) {
    auto* teams = reinterpret_cast<FiberTeams*>((static_cast<std::uintptr_t>(high) << 32) | low);
    const int rank = teams->current_;
    for (;;) {
      (*teams->body_)(Team(*teams, rank));
      teams->fibers_[static_cast<std::size_t>(rank)]->done = true;
      teams->yield();
    }
  }

  void yield() { go(fibers_[static_cast<std::size_t>(current_)]->at, scheduler_); }

  Place scheduler_{.context = {}, .jump = {}, .begun = true};
  std::vector<std::unique_ptr<Fiber>> fibers_;  // a context must not move: it contains pointers into itself
  std::vector<std::byte> slots_;
  const std::function<void(const Team&)>* body_ = nullptr;
  std::byte* shared_ = nullptr;
  int size_ = 0, current_ = 0;
};

}  // namespace cairn::tests
