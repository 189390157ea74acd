#pragma once

#include <setjmp.h>
#include <ucontext.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <atomic>
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

/// What the thread sanitizer must know to see the coroutines of a team as threads of their own, so that a missing sync
/// is a race. Without the sanitizer, the functions do nothing.
namespace sanitizer {

#ifdef __SANITIZE_THREAD__
inline void* current() { return __tsan_get_current_fiber(); }
inline void* create() { return __tsan_create_fiber(0); }
inline void destroy(void* fiber) {
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
}
/// Announces a switch to another coroutine. The switch alone orders no accesses.
inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }
/// Orders what precedes a release of a place before what follows a later acquire of the same place.
inline void release(void* place) { __tsan_release(place); }
inline void acquire(void* place) { __tsan_acquire(place); }
#else
inline void* current() { return nullptr; }
inline void* create() { return nullptr; }
inline void destroy(void*) {}
inline void switch_to(void*) {}
inline void release(void*) {}
inline void acquire(void*) {}
#endif

}  // namespace sanitizer

/// Runs the threads of a GPU's team as coroutines, one after another from one sync to the next.
class FiberTeams {
 public:
  class Team {
   public:
    Team(FiberTeams& teams, int rank) : teams_(teams), rank_(rank) {}
    int rank() const { return rank_; }
    int size() const { return teams_.size_; }
    void sync() const { teams_.wait(rank_); }
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
      sanitizer::destroy(fiber->at.sanitized);
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
    scheduler_.sanitized = sanitizer::current();
    sanitizer::release(&begun_);
    for (int done = 0; done < size;) {
      done = 0;
      for (int i = 0; i < size; ++i) {
        Fiber& fiber = fiber_of(reverse ? size - 1 - i : i);
        if (!fiber.done.load(kRelaxed)) go(scheduler_, fiber.at);
        sanitizer::acquire(&left_);
        done += fiber.done.load(kRelaxed) ? 1 : 0;
      }
      if (done != 0 && done != size) throw std::logic_error("some threads of a team left while others wait at a sync");
    }
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  static constexpr std::size_t kSlot = 128, kStack = 64 * 1024;
  /// The state of a coroutine.
  struct Place {
    ucontext_t context;  ///< where the coroutine begins
    jmp_buf jump;        ///< where the coroutine last switched away
    bool begun = false;
    void* sanitized = nullptr;  ///< the thread sanitizer's state of the coroutine
  };
  using Stack = std::unique_ptr<std::byte[]>;
  struct Fiber {
    Place at;
    Stack stack;
    /// Whether the coroutine has ended its body. Accesses are relaxed, because run() also reads it between two syncs.
    std::atomic<bool> done = true;
    bool odd = false;  ///< whether the number of syncs that the coroutine has passed is odd
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
  /// _longjmp. It is used only where a sanitizer or glibc's checks reject jumps between stacks. The thread sanitizer
  /// must not look at this function, because a call begins in one coroutine and ends in another.
  __attribute__((no_sanitize("thread"))) static void go(Place& from, Place& to) {
    sanitizer::switch_to(to.sanitized);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
    swapcontext(&from.context, &to.context);
#else
    if (_setjmp(from.jump) != 0) return;
    if (std::exchange(to.begun, true)) _longjmp(to.jump, 1);
    setcontext(&to.context);
#endif
  }

  void start(int rank) {
    Fiber& fiber = fiber_of(rank);
    fiber.odd = false;
    const bool waits = fiber.done.exchange(false, kRelaxed) && fiber.stack;  // in enter(), for its next body
    if (waits) return;
    if (!fiber.stack) fiber.stack = new_stack();
    fiber.at.begun = false;
    sanitizer::destroy(std::exchange(fiber.at.sanitized, sanitizer::create()));
    getcontext(&fiber.at.context);
    fiber.at.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.at.context.uc_stack.ss_size = kStack;
    fiber.at.context.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fiber.at.context, reinterpret_cast<void (*)()>(&FiberTeams::enter), 3,
                static_cast<unsigned>(self & 0xFFFFFFFFU), static_cast<unsigned>(self >> 32), rank);
  }

  [[noreturn]] static void enter(unsigned low, unsigned high, int rank) {
    auto* teams = reinterpret_cast<FiberTeams*>((static_cast<std::uintptr_t>(high) << 32) | low);
    for (;;) {
      sanitizer::acquire(&teams->begun_);
      (*teams->body_)(Team(*teams, rank));
      teams->fiber_of(rank).done.store(true, kRelaxed);
      teams->leave(rank);
    }
  }

  Fiber& fiber_of(int rank) { return *fibers_[static_cast<std::size_t>(rank)]; }
  /// Switches from a coroutine to run(), which continues the coroutine later.
  void leave(int rank) {
    Place& own = fiber_of(rank).at;
    sanitizer::release(&left_);
    go(own, scheduler_);
  }
  /// Waits for the other coroutines. Two places take turns: one that comes to its next sync before others have
  /// continued behind this one must not be ordered before them.
  void wait(int rank) {
    char* const place = &met_[std::exchange(fiber_of(rank).odd, !fiber_of(rank).odd) ? 1 : 0];
    sanitizer::release(place);
    leave(rank);
    sanitizer::acquire(place);
  }

  Place scheduler_{.context = {}, .jump = {}, .begun = true};
  std::vector<std::unique_ptr<Fiber>> fibers_;  // a context must not move: it contains pointers into itself
  std::vector<std::byte> slots_;
  const std::function<void(const Team&)>* body_ = nullptr;
  std::byte* shared_ = nullptr;
  int size_ = 0;
  char begun_ = 0, left_ = 0, met_[2] = {0, 0};  ///< addresses by which the thread sanitizer knows what is ordered
};

}  // namespace cairn::tests
