#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

/// Threads that execute the copies of a program: one for each direction or, if `half_duplex`, one for both. The copies
/// of a thread are executed one after another, in the order of Program::copies. Only one other thread may call the
/// members. Allocates nothing after the constructor.
class CopyThreads {
 public:
  /// Starts the threads, if there are copies. See ExecuteOptions::copy_delay_seed.
  CopyThreads(const std::vector<Copy>& copies, bool half_duplex, std::uint64_t delay_seed);
  /// Ends the threads. No Run may be alive.
  ~CopyThreads();
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;

  /// One execution of all copies. If the Run is destroyed before they are over, those that run are finished, and the
  /// others do not begin. So no thread uses memory of a step afterwards, also after an exception.
  class Run {
   public:
    explicit Run(CopyThreads& threads) : threads_(threads) { threads_.begin(); }
    ~Run() { threads_.end(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    CopyThreads& threads_;
  };

  /// Sets the addresses of the next copy in the order of Program::copies. The copy may begin with the next call of
  /// start().
  void add(const std::byte* from, std::byte* to);
  /// Lets all copies begin that were added. A fetch also waits for its evict. With random delays, waits for some
  /// copies.
  void start();
  /// Waits until the copies with the given indices are over. They must have been started. Executes copies that must be
  /// over and that no thread has begun, because on a busy machine, it can take long until a thread wakes up.
  void wait(std::span<const std::int32_t> copies);

 private:
  struct Job {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    std::int32_t source = -1;  ///< index of the copy for which this one waits, or -1
    std::size_t lane = 0;
    bool over = false;
  };
  struct Lane {
    std::vector<std::int32_t> copies;  ///< indices in jobs_, ascending
    std::size_t next = 0;              ///< index in `copies` of the first one that has not begun
    bool busy = false;
    std::uint64_t delays = 0;  ///< number of random times so far
  };

  /// How a copy is delayed.
  enum class Delay : std::uint8_t {
    none,
    some,     ///< the thread sleeps before and within the copy
    most,     ///< the copy begins only when a step waits for it or for a later one
    at_once,  ///< the step after which the copy starts waits for it
  };

  void begin();
  void end();
  Delay delay_of(std::size_t copy) const;
  void serve(std::size_t lane);
  /// Executes a lane's next copy, which must be ready, while the lock is released.
  void execute_next(std::size_t lane, std::unique_lock<std::mutex>& lock);
  /// Returns the lane whose next copy may begin now and must be over before a copy that has not begun can be over.
  std::optional<std::size_t> lane_to_serve(std::int32_t copy) const;
  /// Returns whether a lane has a next copy that may begin now.
  bool ready(const Lane& lane) const;
  void execute(std::size_t copy, std::size_t lane);
  void sleep(std::size_t lane);

  const std::uint64_t delay_seed_;
  std::vector<Job> jobs_;
  std::vector<Lane> lanes_;
  std::uint64_t runs_ = 0;
  std::size_t added_ = 0;      ///< number of copies whose addresses are set
  std::mutex mutex_;           ///< protects all members below, and the lanes and jobs of copies that were started
  std::size_t started_ = 0;    ///< number of copies that may begin, as far as steps are concerned
  std::int32_t awaited_ = -1;  ///< index of the last copy for which a step has waited or waits, or -1
  bool closed_ = false;        ///< whether the threads must end
  std::condition_variable begun_, over_;
  std::vector<std::thread> threads_;
};

}  // namespace cairn::runtime
