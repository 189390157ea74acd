#pragma once

#include <sys/types.h>

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

/// Executes the copies of a program between device and host on threads of its own: one thread for each direction or, if
/// `half_duplex`, one for both. A thread executes its copies one after another, in the order of Program::copies. Only
/// one thread, that of the executor, may call the members. Nothing is allocated after the constructor.
class CopyThreads {
 public:
  /// Starts the threads, if there are copies and the system permits threads. `delay_seed` is
  /// ExecuteOptions::copy_delay_seed.
  CopyThreads(const std::vector<Copy>& copies, bool half_duplex, std::uint64_t delay_seed);
  /// Ends the threads. No Run may be alive. In a child process (fork()), which has no threads, only returns.
  ~CopyThreads();
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;

  /// One execution of all copies of the program. If the Run is destroyed before all copies are complete, for example by
  /// an exception, it waits for the copies that are running, and no further copy begins. So no copy thread reads or
  /// writes the memory of this execution afterwards.
  class Run {
   public:
    explicit Run(CopyThreads& threads) : threads_(threads) { threads_.begin(); }
    ~Run() { threads_.end(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    CopyThreads& threads_;
  };

  /// Sets the addresses of the next copy in the order of Program::copies. The copy may begin after the next call of
  /// start().
  void add(const std::byte* from, std::byte* to);
  /// Permits all copies that were added to begin. A fetch begins only after its evict is complete. If copies are
  /// delayed at random (`delay_seed` is not 0), this call waits until those copies are complete for which the kind of
  /// delay Delay::at_once was drawn.
  void start();
  /// Waits until the copies with the given indices are complete. They must have been started. If such a copy has not
  /// begun, the calling thread executes it, because on a busy machine it can take long until a copy thread wakes up.
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
  /// The copies that one thread executes, and how far it is.
  struct Lane {
    std::vector<std::int32_t> copies;  ///< indices in jobs_, ascending
    std::size_t next = 0;              ///< index in `copies` of the first copy that has not begun
    bool busy = false;
    std::uint64_t delays = 0;  ///< number of random sleeps so far
  };

  /// The threads, and what they wait for.
  struct Threads {
    std::mutex mutex;  ///< protects started_, awaited_, closed_, lanes_, and the jobs of copies that were started
    std::condition_variable begun, over;
    std::vector<std::thread> all;
  };

  /// How a copy is delayed.
  enum class Delay : std::uint8_t {
    none,
    some,     ///< the thread sleeps before and within the copy
    most,     ///< the copy begins only when a step waits for it or for a later copy
    at_once,  ///< start() waits until the copy is complete, so no step runs meanwhile
  };

  void begin();
  void end();
  Delay delay_of(std::size_t copy) const;
  void serve(std::size_t lane);
  /// Executes the next copy of a lane. This copy must be ready, i.e. permitted to begin. Releases the lock meanwhile.
  void execute_next(std::size_t lane, std::unique_lock<std::mutex>& lock);
  /// Returns a lane whose next copy may begin now and must be complete before `copy` can be complete: the lane of
  /// `copy` or, if the next copy of this lane waits for an evict, the lane of this evict. Returns none if neither of
  /// these two lanes has a copy that may begin.
  std::optional<std::size_t> lane_to_serve(std::int32_t copy) const;
  /// Returns whether a lane has a next copy, and this copy may begin now.
  bool ready(const Lane& lane) const;
  void execute(std::size_t copy, std::size_t lane);
  void sleep(std::size_t lane);

  const std::uint64_t delay_seed_;
  std::vector<Job> jobs_;
  std::vector<Lane> lanes_;
  std::uint64_t runs_ = 0;
  std::size_t added_ = 0;      ///< number of copies whose addresses are set
  std::size_t started_ = 0;    ///< number of copies that start() has permitted to begin
  std::int32_t awaited_ = -1;  ///< highest index of a copy for which a step has waited or waits, or -1
  bool closed_ = false;        ///< whether the threads must end
  pid_t process_;              ///< the process that has the threads
  std::unique_ptr<Threads> threads_ = std::make_unique<Threads>();
};

}  // namespace cairn::runtime
