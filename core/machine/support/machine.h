#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/core/machine/support/team.h"
#include "cairn/core/machine/support/thread_pool.h"

/// A Machine is a processor with its own memory: HostMachine is the CPU, and cuda/ has one for a GPU. Device algorithms
/// are written once, as templates over a Machine and its Teams (core/machine/support/team.h). They are in sim/device/
/// (the simulator), solvers/order/device/ (searches for an order) and runtime/device/ (ops). On the CPU a Team is one
/// thread; on a GPU it is a thread, a warp or a block. A Machine runs its calls in order, but a call can return before
/// its work is done. All pointers point to the machine's own memory, except the source of upload and the target of
/// download.
/// Every Machine has
///
///   launch(functor, teams, shared_bytes = 0)
///       Calls functor(team, index) for every index in [0, teams), in any order and concurrently. Does nothing for 0
///       teams.
///       F::kThreads, for a functor of type F, is the size of a team on a GPU: 1 (a thread), 32 (a warp) or a multiple
///       of 32 up to 1024 (a block). The functor must be trivially copyable and take at most 4080 bytes. shared_bytes
///       is per team, at most shared_limit(), and 0 if kThreads is 1. Of all results, only the rounding of floats may
///       depend on the size of a team.
///   shared_limit()                         largest shared_bytes of a launch. If kThreads is 32, this is the limit for
///                                          kWarpsOfBlock teams together, which share a block
///   resident_teams<F>(shared_bytes)        number of teams that run at the same time if a functor F is launched with
///                                          shared_bytes. If each team needs memory of its own, launch at most this
///                                          many teams, and give each of them several pieces of work
///   array<T>(count)                        uninitialised Array<T> (of trivially copyable T), aligned to 256 bytes;
///                                          its destructor waits for earlier work of the machine
///   free_bytes()                           number of bytes that arrays can still take
///   upload(from_host, count, to), download(from, count, to_host)       both return once all work is done
///   fill(address, byte, bytes)             like memset
///   exclusive_sum(in, out, count)          out[i] = in[0] + .. + in[i - 1]; out has count + 1 entries, and the last is
///                                          the total. int32 or int64 in, int64 out; in and out may not overlap
///   sort_pairs(keys, sorted_keys, values, sorted_values, count)        stable, ascending; uint64 keys, int32 values
///   select(flags, count, out)              writes the ascending indices of the bytes that are not 0, as int64, to out;
///                                          returns their number
///   sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace)
///       stable, ascending: sorted_keys[i] = keys[sorted_places[i]], all int32; keys in [0, limit). Uses only
///       sort_workspace(count) bytes that the caller provides, aligned to 256, so it neither allocates nor waits
///   bind()                                 returns an object; while it lives, the calling thread may use the machine
///                                          (a GPU is then the thread's current device)
namespace cairn::core {

/// Number of teams of 32 threads that share a block and its shared memory on a GPU.
inline constexpr int kWarpsOfBlock = 8;

/// An array in the memory of a Machine.
template <class T, class Deleter = std::default_delete<std::byte[]>>
class Array {
 public:
  Array() = default;
  Array(std::unique_ptr<std::byte[], Deleter> memory, T* data, std::int64_t count)
      : memory_(std::move(memory)), data_(data), count_(count) {}
  T* data() const { return data_; }
  std::int64_t size() const { return count_; }

 private:
  std::unique_ptr<std::byte[], Deleter> memory_;
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

/// The CPU as a Machine. Only one thread may use it at a time. Its loops run on that thread and on threads of the pool
/// (thread_pool.h).
class HostMachine {
 public:
  template <class T>
  using ArrayOf = Array<T>;

  explicit HostMachine(int threads = 0) : threads_(threads > 0 ? threads : core::thread_count()) {}
  int threads() const { return threads_; }

  /// Calls body(begin, end, thread) for pieces that cover [0, count). Each piece except the last has at least `grain`
  /// elements. `thread` is less than threads(). If a call throws, waits for the other calls and rethrows the exception.
  template <class F>
  void for_each(std::int64_t count, std::int64_t grain, const F& body) const {
    // With many pieces per thread, threads idle only briefly while the last pieces end.
    constexpr std::int64_t kPiecesOfThread = 32;
    const std::int64_t piece = threads_ == 1 ? count : std::max(grain, count / (threads_ * kPiecesOfThread) + 1);
    if (count > 0) core::parallel_blocks(count, piece, threads_, body);
  }

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) const {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096);
    for_each(teams, 1, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<std::max_align_t> memory(static_cast<std::size_t>(shared_bytes) / sizeof(std::max_align_t) + 1);
      const SerialTeam team(reinterpret_cast<std::byte*>(memory.data()));
      for (std::int64_t i = begin; i < end; ++i) functor(team, i);
    });
  }

  template <class T>
  Array<T> array(std::int64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    constexpr std::size_t kAlignment = 256;
    auto memory = std::unique_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(count) * sizeof(T) + kAlignment]);
    void* begin = memory.get();
    std::size_t room = static_cast<std::size_t>(count) * sizeof(T) + kAlignment;
    std::align(kAlignment, static_cast<std::size_t>(count) * sizeof(T), begin, room);
    return Array<T>(std::move(memory), static_cast<T*>(begin), count);
  }
  template <class T>
  void upload(const T* from, std::int64_t count, T* to) const {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
  template <class T>
  void download(const T* from, std::int64_t count, T* to) const {
    upload(from, count, to);
  }
  void fill(void* address, int byte, std::int64_t bytes) const {
    if (bytes > 0) std::memset(address, byte, static_cast<std::size_t>(bytes));
  }

  template <class T>
  void exclusive_sum(const T* in, std::int64_t* out, std::int64_t count) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = sum;
      sum += in[i];
    }
    out[count] = sum;
  }
  void sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, std::int64_t count) const;
  std::int64_t select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) const;
  std::int64_t sort_workspace(std::int64_t /*count*/) const { return 0; }
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace) const;

  struct [[maybe_unused]] Bound {};
  Bound bind() const { return {}; }

  std::int64_t shared_limit() const { return std::numeric_limits<std::int64_t>::max(); }
  std::int64_t free_bytes() const;
  template <class F>
  std::int64_t resident_teams(std::int64_t /*shared_bytes*/) const {
    return threads_;
  }

 private:
  int threads_;
};

}  // namespace cairn::core
