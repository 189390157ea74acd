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

/// These functions tell the thread sanitizer that the coroutines of a team (a group of threads that wait for each other
/// at syncs) are threads. So it reports a missing sync as a race. Without the sanitizer, they do nothing.
namespace sanitizer {

#ifdef __SANITIZE_THREAD__
inline void* current() { return __tsan_get_current_fiber(); }
inline void* create() { return __tsan_create_fiber(0); }
inline void destroy(void* fiber) {
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
}
/// Announces a switch to another coroutine. The switch alone creates no order between memory accesses.
inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }
/// release() and a later acquire() of the same place create an order: accesses before release() happen before accesses
/// after acquire().
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

/// Runs the threads of a GPU's team as coroutines. Each coroutine runs until its next sync, then the next coroutine
/// runs.
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

  /// Calls body(team) once in each of `size` threads. Throws std::logic_error if some threads have ended while others
  /// still wait at a sync.
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
    jmp_buf jump;        ///< where the coroutine has last switched to another one
    bool begun = false;
    void* sanitized = nullptr;  ///< the thread sanitizer's data about the coroutine
  };
  using Stack = std::unique_ptr<std::byte[]>;
  struct Fiber {
    Place at;
    Stack stack;
    /// Whether the coroutine has reached the end of its body. run() may read this flag between two syncs. Accesses are
    /// relaxed, so that for the thread sanitizer such a read puts no accesses of coroutines into an order.
    std::atomic<bool> done = true;
    bool odd = false;  ///< whether the coroutine has passed an odd number of syncs
  };

  /// Stacks of destroyed FiberTeams. They are kept for reuse, because many tests need a thousand threads. The pages of
  /// a stack take no memory until they are used.
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

  /// Leaves one coroutine and continues another one. swapcontext() makes a system call each time and is ten times as
  /// slow as _longjmp(). So it is used only where a sanitizer or glibc's checks reject jumps between stacks. The thread
  /// sanitizer must not look at this function, because a call of it begins in one coroutine and ends in another.
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
    // If `waits` is true, the coroutine already waits in enter() for its next body.
    const bool waits = fiber.done.exchange(false, kRelaxed) && fiber.stack;
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
  /// Switches from a coroutine to run(). Later, run() switches back and continues the coroutine.
  void leave(int rank) {
    Place& own = fiber_of(rank).at;
    sanitizer::release(&left_);
    go(own, scheduler_);
  }
  /// Waits until all coroutines have reached this sync. For the thread sanitizer, two places are used in turn. With a
  /// single place, a coroutine that is already at its next sync would be ordered before coroutines that have yet to
  /// leave this sync.
  void wait(int rank) {
    char* const place = &met_[std::exchange(fiber_of(rank).odd, !fiber_of(rank).odd) ? 1 : 0];
    sanitizer::release(place);
    leave(rank);
    sanitizer::acquire(place);
  }

  Place scheduler_{.context = {}, .jump = {}, .begun = true};
  // A Fiber must not move, because its context contains pointers into itself.
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::byte> slots_;
  const std::function<void(const Team&)>* body_ = nullptr;
  std::byte* shared_ = nullptr;
  int size_ = 0;
  char begun_ = 0, left_ = 0, met_[2] = {0, 0};  ///< addresses by which the thread sanitizer recognizes orders
};

}  // namespace cairn::tests
