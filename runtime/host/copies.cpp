#include "cairn/runtime/host/copies.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "cairn/runtime/support/element.h"

namespace cairn::runtime {

CopyThreads::CopyThreads(const std::vector<Copy>& copies, bool half_duplex, std::uint64_t delay_seed)
    : delay_seed_(delay_seed), process_(getpid()) {
  if (copies.empty()) return;
  lanes_.resize(half_duplex ? 1 : 2);
  for (const Copy& copy : copies) {
    const std::size_t lane = copy.is_evict() ? 0 : lanes_.size() - 1;
    lanes_[lane].copies.push_back(static_cast<std::int32_t>(jobs_.size()));
    jobs_.push_back({.bytes = static_cast<std::size_t>(copy.device.bytes), .source = copy.source, .lane = lane});
  }
  try {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) threads_->all.emplace_back([this, lane] { serve(lane); });
  } catch (const std::system_error&) {
    // The system permits no more threads. The threads that wait for copies then execute those of the other lanes.
  }
}

CopyThreads::~CopyThreads() {
  if (getpid() != process_) {
    static_cast<void>(threads_.release());
    return;
  }
  {
    const std::lock_guard lock(threads_->mutex);
    closed_ = true;
  }
  threads_->begun.notify_all();
  for (std::thread& thread : threads_->all) thread.join();
}

void CopyThreads::begin() {
  // A child process has none of the threads, and one of them may have held the mutex when the process was forked. The
  // destructors of what the threads wait for would wait for them, so these objects are left as they are.
  if (getpid() != process_) {
    static_cast<void>(threads_.release());
    threads_ = std::make_unique<Threads>();
    process_ = getpid();
    for (Lane& lane : lanes_) lane.busy = false;
  }
  const std::lock_guard lock(threads_->mutex);
  ++runs_;
  added_ = started_ = 0;
  awaited_ = -1;
  for (Job& job : jobs_) job.over = false;
  for (Lane& lane : lanes_) lane.next = 0;
}

void CopyThreads::end() {
  std::unique_lock lock(threads_->mutex);
  started_ = 0;
  threads_->over.wait(lock, [this] { return std::ranges::none_of(lanes_, &Lane::busy); });
}

void CopyThreads::add(const std::byte* from, std::byte* to) {
  Job& job = jobs_[added_++];
  job.from = from;
  job.to = to;
}

void CopyThreads::start() {
  std::size_t first = 0;
  {
    const std::lock_guard lock(threads_->mutex);
    first = std::exchange(started_, added_);
  }
  threads_->begun.notify_all();
  for (std::size_t i = first; i < added_; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (delay_of(i) == Delay::at_once) wait({&index, 1});
  }
}

void CopyThreads::wait(std::span<const std::int32_t> copies) {
  std::unique_lock lock(threads_->mutex);
  awaited_ = std::max(awaited_, std::ranges::max(copies));
  if (delay_seed_ != 0) threads_->begun.notify_all();
  const auto over = [this](std::int32_t i) { return jobs_[static_cast<std::size_t>(i)].over; };
  while (true) {
    const auto missing = std::ranges::find_if_not(copies, over);
    if (missing == copies.end()) return;
    if (const std::optional<std::size_t> lane = lane_to_serve(*missing)) {
      execute_next(*lane, lock);
    } else {
      threads_->over.wait(lock);
    }
  }
}

std::optional<std::size_t> CopyThreads::lane_to_serve(std::int32_t copy) const {
  const std::size_t own = jobs_[static_cast<std::size_t>(copy)].lane;
  const Lane& lane = lanes_[own];
  if (lane.busy) return std::nullopt;
  if (ready(lane)) return own;
  const std::int32_t source = jobs_[static_cast<std::size_t>(lane.copies[lane.next])].source;
  if (source < 0) return std::nullopt;
  const std::size_t other = jobs_[static_cast<std::size_t>(source)].lane;
  return ready(lanes_[other]) ? std::optional(other) : std::nullopt;
}

CopyThreads::Delay CopyThreads::delay_of(std::size_t copy) const {
  constexpr std::uint64_t kKinds = 4;
  return delay_seed_ == 0 ? Delay::none : static_cast<Delay>(random_bits(delay_seed_, runs_, copy) % kKinds);
}

bool CopyThreads::ready(const Lane& lane) const {
  if (lane.busy || lane.next == lane.copies.size()) return false;
  const auto index = static_cast<std::size_t>(lane.copies[lane.next]);
  if (index >= started_) return false;
  if (delay_of(index) == Delay::most && awaited_ < lane.copies[lane.next]) return false;
  const std::int32_t source = jobs_[index].source;
  return source < 0 || jobs_[static_cast<std::size_t>(source)].over;
}

void CopyThreads::serve(std::size_t lane) {
  std::unique_lock lock(threads_->mutex);
  while (true) {
    threads_->begun.wait(lock, [&] { return closed_ || ready(lanes_[lane]); });
    if (closed_) return;
    execute_next(lane, lock);
  }
}

void CopyThreads::execute_next(std::size_t at, std::unique_lock<std::mutex>& lock) {
  Lane& lane = lanes_[at];
  const auto index = static_cast<std::size_t>(lane.copies[lane.next++]);
  lane.busy = true;
  lock.unlock();
  execute(index, at);
  lock.lock();
  jobs_[index].over = true;
  lane.busy = false;
  threads_->over.notify_all();
  threads_->begun.notify_all();  // a fetch on another thread may wait for this evict
}

void CopyThreads::execute(std::size_t copy, std::size_t lane) {
  const Job& job = jobs_[copy];
  const bool delayed = delay_of(copy) == Delay::some;
  const std::size_t half = delayed ? job.bytes / 2 : 0;
  if (delayed) sleep(lane);
  std::memcpy(job.to, job.from, half);
  if (delayed) sleep(lane);
  std::memcpy(job.to + half, job.from + half, job.bytes - half);
}

void CopyThreads::sleep(std::size_t lane) {
  constexpr std::uint64_t kMostMicroseconds = 200;
  const std::uint64_t bits = random_bits(delay_seed_ + runs_, lane, lanes_[lane].delays++);
  std::this_thread::sleep_for(std::chrono::microseconds(bits % kMostMicroseconds));
}

}  // namespace cairn::runtime
