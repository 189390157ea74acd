// This is the only file that uses MPI. If the build has no MPI, only one process is possible.
#include "cairn/cli/mpi.h"

#include <fmt/format.h>

#include <cstdlib>
#include <initializer_list>

#include "cairn/cli/command.h"

#if CAIRN_HAS_MPI
#include <mpi.h>
#endif

namespace cairn::cli {
namespace {

/// Returns the number in the first environment variable of `names` that is set, or -1 if none is.
int from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return -1;
}

/// Returns whether mpirun or a similar command started this process. Open MPI, PMIx, and the PMI of MPICH and Slurm set
/// these variables.
bool started_by_mpirun() { return from_environment({"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) >= 0; }

#if CAIRN_HAS_MPI

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

  void broadcast(std::span<std::int64_t> values) override {
    MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_INT64_T, 0, MPI_COMM_WORLD);
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    // Sends the texts one by one, because their total length can exceed MPI's int.
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

}  // namespace

std::unique_ptr<Processes> open_processes() { return started_by_mpirun() ? open_mpi() : std::make_unique<Processes>(); }

}  // namespace cairn::cli
