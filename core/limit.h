#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace cairn::core {

/// Says when a solver must stop: when some wall time has passed, when a number of work units has been done (which is
/// deterministic), or when a stop flag is set (Ctrl-C). The solver stops at whichever of these conditions holds first.
struct Limit {
  double seconds = std::numeric_limits<double>::infinity();  ///< wall time
  static constexpr std::int64_t kAnyWork = std::numeric_limits<std::int64_t>::max();
  /// Number of work units. Usually one unit is one visit of a node. The same computation takes the same number of units
  /// on every machine.
  std::int64_t work = kAnyWork;
  const std::atomic<bool>* stop = nullptr;  ///< solvers read it often; once set, they return their best result so far

  bool counts_work() const { return work != kAnyWork; }
  bool interrupted() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

/// Counts work and time, and compares them with a Limit. charge() adds work; expired() returns whether to stop.
class Stopwatch {
 public:
  explicit Stopwatch(const Limit& limit) : limit_(limit), start_(Clock::now()) {}

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool interrupted() const { return limit_.interrupted(); }

  /// Adds `work` units without checking the limit. Returns this object, so that a call of expired() can follow.
  Stopwatch& charge(std::int64_t work = 1) {
    done_ += work;
    since_check_ += work;
    return *this;
  }
  /// Returns whether to stop. The call is cheap enough for inner loops, because it reads the clock only once per 4096
  /// charged units.
  bool expired() { return since_check_ >= 4096 ? expired_now() : over(); }
  /// Returns whether to stop. Always reads the clock.
  bool expired_now() {
    since_check_ = 0;
    if (!over()) expired_ = seconds() > limit_.seconds;
    return expired_;
  }
  /// Returns whether the time limit has passed or the stop flag is set. The work limit is not considered. Reads the
  /// clock. Several threads may call this function at once.
  bool passed() const { return interrupted() || seconds() > limit_.seconds; }
  std::int64_t work() const { return done_; }
  /// Returns what is left of the limit (time and work), for a nested solver.
  Limit rest() const {
    Limit rest = limit_;
    rest.seconds = limit_.seconds - seconds();
    if (limit_.counts_work()) rest.work = limit_.work - done_;
    return rest;
  }
  /// Returns rest() with time and work multiplied by `part`, which must be in [0, 1].
  Limit share(double part) const {
    Limit limit = rest();
    limit.seconds *= part;
    if (limit.counts_work()) limit.work = static_cast<std::int64_t>(static_cast<double>(limit.work) * part);
    return limit;
  }

 private:
  bool over() { return expired_ = expired_ || interrupted() || done_ > limit_.work; }

  using Clock = std::chrono::steady_clock;
  Limit limit_;
  Clock::time_point start_;
  std::int64_t done_ = 0;
  std::int64_t since_check_ = 4096;
  bool expired_ = false;
};

/// Calls `work` with a Stopwatch for the limit watch.share(part), and returns the result of `work`. The units that
/// `work` charged are charged to `watch`, too, even if `work` throws.
template <class Work>
auto within(Stopwatch& watch, double part, const Work& work) {
  struct Count {
    Stopwatch& outer;
    Stopwatch inner;
    ~Count() { outer.charge(inner.work()); }
  } count{watch, Stopwatch(watch.share(part))};
  return work(count.inner);
}

}  // namespace cairn::core
