#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace cairn::tests {

/// As many threads as a device's team has, as coroutines that switch at every sync.
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

  /// body(team) on `size` threads. Throws std::logic_error where they do not all come to the same syncs.
  void run(int size, std::byte* shared, bool reverse, const std::function<void(const Team&)>& body) {
    size_ = size;
    shared_ = shared;
    slots_.resize(static_cast<std::size_t>(size) * kSlot);
    fibers_.resize(static_cast<std::size_t>(size));
    body_ = &body;
    for (int rank = 0; rank < size; ++rank) start(rank);
    for (int done = 0; done < size;) {
      done = 0;
      for (int i = 0; i < size; ++i) {
        current_ = reverse ? size - 1 - i : i;
        Fiber& fiber = fibers_[static_cast<std::size_t>(current_)];
        if (!fiber.done) swapcontext(&scheduler_, &fiber.context);
        done += fiber.done ? 1 : 0;
      }
      if (done != 0 && done != size) throw std::logic_error("some threads of a team left while others wait at a sync");
    }
  }

 private:
  static constexpr std::size_t kSlot = 128;
  static constexpr std::size_t kStack = 64 * 1024;
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<std::byte[]> stack;
    bool done = false;
  };

  void start(int rank) {
    Fiber& fiber = fibers_[static_cast<std::size_t>(rank)];
    if (!fiber.stack) fiber.stack = std::make_unique<std::byte[]>(kStack);
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&FiberTeams::enter), 2,
                static_cast<unsigned>(self & 0xFFFFFFFFU), static_cast<unsigned>(self >> 32));
  }

  static void enter(unsigned low, unsigned high) {
    auto* teams = reinterpret_cast<FiberTeams*>((static_cast<std::uintptr_t>(high) << 32) | low);
    const int rank = teams->current_;
    (*teams->body_)(Team(*teams, rank));
    teams->fibers_[static_cast<std::size_t>(rank)].done = true;
  }

  void yield() { swapcontext(&fibers_[static_cast<std::size_t>(current_)].context, &scheduler_); }

  ucontext_t scheduler_{};
  std::vector<Fiber> fibers_;
  std::vector<std::byte> slots_;
  const std::function<void(const Team&)>* body_ = nullptr;
  std::byte* shared_ = nullptr;
  int size_ = 0;
  int current_ = 0;
};

}  // namespace cairn::tests
