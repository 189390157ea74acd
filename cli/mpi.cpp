// This is the only file that uses MPI. If Cairn was built without MPI, only one process is possible.
#include "cairn/cli/mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cairn/cli/command.h"
#include "cairn/core/support/random.h"
#include "cairn/core/threads.h"

#if CAIRN_HAS_MPI
#include <mpi.h>
#endif

namespace cairn::cli {
namespace {

/// Returns the number in the first environment variable of `names` that is set, or -1 if none of them is set.
int from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return -1;
}

/// Returns whether mpirun or a similar command started this process. The variables below are set by Open MPI, by PMIx,
/// and by the PMI of MPICH and Slurm.
bool started_by_mpirun() { return from_environment({"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) >= 0; }

#if CAIRN_HAS_MPI

/// Exchanges schedules between the processes of a search (its peers). A message is a number that identifies the graph,
/// followed by the schedule. At most one message to each peer is under way, so a peer that receives nothing for a long
/// time does not make messages pile up in memory.
class MpiPeers : public solvers::Peers {
 public:
  MpiPeers(int rank, int count) : rank_(rank), count_(count) {}

  void send(std::uint64_t graph, const std::vector<core::NodeId>& steps) override {
    next_.assign(kHeader, 0);
    std::memcpy(next_.data(), &graph, sizeof graph);
    next_.insert(next_.end(), steps.begin(), steps.end());
    send_next();
  }
  std::vector<std::vector<core::NodeId>> received(std::uint64_t graph) override {
    std::vector<std::vector<core::NodeId>> found;
    while (receive()) {
      if (std::memcmp(message_.data(), &graph, sizeof graph) == 0)
        found.emplace_back(message_.begin() + kHeader, message_.end());
    }
    send_next();
    return found;
  }
  /// Receives messages until all messages of all processes have arrived. A process enters the barrier once its own
  /// messages have been received. So when all processes have entered the barrier, no message is under way.
  void finish() {
    next_.clear();
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (int over = 0; over == 0;) {
      while (receive()) {
      }
      if (barrier != MPI_REQUEST_NULL) {
        MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
      } else if (all_sent()) {
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
      }
      // Sleeps instead of keeping a core busy, because other processes of this machine may still search.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  static constexpr int kTag = 1;  // MPI tag of messages; gather() uses tag 0
  // Number of NodeIds that the number of the graph takes at the beginning of a message, before the steps.
  static constexpr std::ptrdiff_t kHeader = sizeof(std::uint64_t) / sizeof(core::NodeId);

  bool all_sent() {
    int all = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }
  void send_next() {
    if (next_.empty() || !all_sent()) return;
    sent_.swap(next_);
    next_.clear();
    requests_.clear();
    for (int rank = 0; rank < count_; ++rank) {
      if (rank == rank_) continue;
      requests_.push_back(MPI_REQUEST_NULL);
      // Issend ends only when the peer receives the message. Isend could end as soon as MPI has copied the message, and
      // then several messages to one peer could be under way.
      MPI_Issend(sent_.data(), static_cast<int>(sent_.size()), MPI_INT32_T, rank, kTag, MPI_COMM_WORLD,
                 &requests_.back());
    }
  }
  /// Receives a message into message_ if a message has arrived. Returns false if no message has arrived.
  bool receive() {
    int arrived = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &arrived, &status);
    if (arrived == 0) return false;
    int length = 0;
    MPI_Get_count(&status, MPI_INT32_T, &length);
    message_.resize(static_cast<std::size_t>(length));
    MPI_Recv(message_.data(), length, MPI_INT32_T, status.MPI_SOURCE, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return true;
  }

  const int rank_, count_;
  std::vector<core::NodeId> next_, sent_, message_;
  std::vector<MPI_Request> requests_;  ///< the requests that send sent_, one for each peer
};

class MpiProcesses : public Processes {
 public:
  MpiProcesses() {
    int threads = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_count_);
    MPI_Comm_free(&local);
  }
  ~MpiProcesses() override { MPI_Finalize(); }
  MpiProcesses(const MpiProcesses&) = delete;
  MpiProcesses& operator=(const MpiProcesses&) = delete;

  int rank() const override { return rank_; }
  int count() const override { return count_; }
  int local_rank() const override { return local_rank_; }
  int local_count() const override { return local_count_; }
  void abort(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }
  solvers::Peers* peers() override {
    if (!peers_ && count_ > 1) peers_.emplace(rank_, count_);
    return peers_ ? &*peers_ : nullptr;
  }
  void end_exchange() override {
    if (peers_) peers_->finish();
    peers_.reset();
  }

  void broadcast(std::span<std::int64_t> values) override {
    MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_INT64_T, 0, MPI_COMM_WORLD);
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    // Sends the texts one by one, because their total length can exceed the largest int, the type of lengths in MPI.
    const auto length = static_cast<std::int64_t>(bytes.size());
    std::vector<std::int64_t> lengths(rank_ == 0 ? static_cast<std::size_t>(count_) : 0);
    MPI_Gather(&length, 1, MPI_INT64_T, lengths.data(), 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (rank_ != 0) {
      if (length > 0) MPI_Send(bytes.data(), static_cast<int>(length), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      return {};
    }
    std::vector<std::string> texts(static_cast<std::size_t>(count_));
    texts[0] = bytes;
    for (int rank = 1; rank < count_; ++rank) {
      std::string& text = texts[rank];
      text.resize(static_cast<std::size_t>(lengths[rank]));
      if (text.empty()) continue;
      MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return texts;
  }

 private:
  int rank_ = 0, count_ = 1, local_rank_ = 0, local_count_ = 1;
  std::optional<MpiPeers> peers_;
};

std::unique_ptr<Processes> open_mpi() { return std::make_unique<MpiProcesses>(); }

#else

std::unique_ptr<Processes> open_mpi() {
  const int count = from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  if (count > 1)
    throw Failure(kDevice,
                  fmt::format("mpirun started {} processes, but this build has no MPI; start one, or build it where an "
                              "MPI is installed (libopenmpi-dev), with -D CAIRN_MPI=ON",
                              count));
  return std::make_unique<Processes>();
}

#endif

/// Returns a copy of `failure` whose message says which process failed.
Failure named(const Failure& failure, const Processes& processes) {
  return {failure.exit_code, fmt::format("process {}: {}", processes.rank(), failure.what()), failure.details};
}

}  // namespace

std::unique_ptr<Processes> open_processes() { return started_by_mpirun() ? open_mpi() : std::make_unique<Processes>(); }

int threads_of(const CLI::App& app, const Processes& processes) {
  if (app.count("--threads") > 0 || processes.local_count() == 1) return core::thread_count();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(core::available_cores(), cores / processes.local_count()));
}

std::uint64_t seed_of(std::uint64_t seed, int rank) {
  // core::Random adds a constant to its state for each number. If seeds differed by a small multiple of this constant,
  // they would give the same numbers, shifted. So every rank except 0 gets a random number as its seed.
  return rank == 0 ? seed : core::Random(~seed + static_cast<std::uint64_t>(rank)).next();
}

bool together(Processes& processes, const std::function<void()>& step) {
  std::optional<Failure> failure;
  try {
    step();
  } catch (...) {
    failure = current_failure();
  }
  std::array<std::int64_t, 1> first_failed = {-1};
  const std::vector<std::string> outcomes = processes.gather(failure ? "failed" : "done");
  for (std::size_t rank = 0; rank < outcomes.size() && first_failed[0] < 0; ++rank) {
    if (outcomes[rank] == "failed") first_failed[0] = static_cast<std::int64_t>(rank);
  }
  processes.broadcast(first_failed);
  if (first_failed[0] == processes.rank()) throw processes.count() == 1 ? *failure : named(*failure, processes);
  return first_failed[0] < 0;
}

void or_end_all(Processes& processes, bool json, const std::function<void()>& step) {
  try {
    step();
  } catch (...) {
    if (processes.count() == 1) throw;
    processes.abort(print_failure(named(current_failure(), processes), json));
  }
}

}  // namespace cairn::cli
