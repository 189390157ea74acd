#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Memory of the simulated GPU, which finds races and reads of unwritten bytes. For each byte, it records whether the
/// byte was written, which thread wrote it last, and which threads have read it since.
///
/// Races are found by the happens-before relation. Each block counts epochs. A thread enters a new epoch when it waits
/// for other threads or executes a fence. An access is called over for a thread if it happens before everything that
/// the thread does next. This holds if the access was made in an earlier launch, or if the two threads have waited for
/// each other since the access. An access that is over for a thread cannot race with the thread's next accesses.
namespace cairn::tests::ptx {

inline constexpr int kLaunchBits = 12;  ///< number of bits that record the launch of an access

/// A vector clock. Its keys are threads, warps and whole blocks that have published accesses. The value of a key is the
/// first epoch of which the accesses are not yet over.
using Clock = std::map<std::uint64_t, std::uint32_t>;
/// The clock of what a thread has acquired from other threads, or nullptr if it has acquired nothing. Threads that have
/// waited for each other share one clock.
using Known = std::shared_ptr<const Clock>;
/// Returns a clock for which an access is over if it is over for `a` or for `b`.
Known both(const Known& a, const Known& b);

/// A thread at the time of an access. block_epoch, warp_epoch and part_epoch say which accesses of other threads are
/// over for it, i.e. happen before this access.
struct Actor {
  std::uint32_t launch = 0;       ///< number of the launch, counted from 1
  std::uint32_t block = 0;        ///< number of the block in the grid
  std::uint32_t thread = 0;       ///< number of the thread in the block
  std::uint32_t epoch = 0;        ///< epoch of the thread
  std::uint32_t block_epoch = 0;  ///< accesses of the block's threads in earlier epochs than this are over
  std::uint32_t warp_epoch = 0;   ///< accesses of the warp's threads in earlier epochs than this are over
  std::uint32_t part_epoch = 0;   ///< accesses of the lanes in `part` in earlier epochs than this are over
  std::uint32_t part = 0;         ///< the lanes with which the thread waited last, one bit per lane
  const Clock* known = nullptr;   ///< clock of what the thread has acquired, or nullptr if it is nothing
  /// Whether the access is atomic, volatile or ordered. Two such accesses do not race with each other.
  bool strong = false;
  bool narrow = false;  ///< whether only threads of the same block may rely on the access being strong (.cta)
};

/// The latest accesses to a byte, packed into one word: their launch, block, thread and epoch, whether they are strong,
/// and whether several threads made them. The value 0 means that there was no access.
using Tag = std::uint64_t;

/// A thread at the time of its latest fence, and the clock of what it had acquired by then. If there was no fence, the
/// epoch is 0.
struct LatestFence {
  Actor actor;
  Known known;
};

/// Records the order between accesses of different threads that fences and strong accesses create. When a thread writes
/// to an address after a fence, it publishes accesses there: its own accesses before the fence, and all accesses that
/// were over for it at the fence. When another thread reads the address and then executes a fence, it acquires these
/// accesses, so that they are over for it, too. A fence or an access with the scope of a block (.cta) publishes only
/// for threads of the same block, and acquires only from them.
class FenceOrder {
 public:
  /// Publishes at the address what happened before `fence`: for the whole device, or only for the block of the fence.
  void release(std::uint64_t address, const LatestFence& fence, bool whole_device);
  /// Returns `known`, together with what was published at the address for this block and, if `whole_device` is set, for
  /// all blocks.
  Known acquire(std::uint64_t address, std::uint32_t block, bool whole_device, const Known& known) const;

 private:
  /// Stands for the whole device where a block's number is expected.
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};
  std::map<std::pair<std::uint64_t, std::uint32_t>, Known> released_;
};

/// A contiguous part of memory: an allocation, the shared memory of a block, or the local memory of a thread.
class Region {
 public:
  /// Creates a region. `races` says whether to look for races. It is false if only one thread uses the region.
  Region(std::byte* base, std::size_t bytes, bool races);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  /// Returns the offset of an address from the start of the region.
  std::uint64_t offset_of(std::uint64_t address) const { return address - reinterpret_cast<std::uint64_t>(base_); }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }

  void mark_written(std::uint64_t offset, std::uint64_t bytes);
  void mark_unwritten(std::uint64_t offset, std::uint64_t bytes);
  /// Returns whether all these bytes were written. If not, sets `first` to the offset of the first unwritten byte.
  bool written(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& first) const;

  /// Forgets which threads have accessed the bytes.
  void forget_accesses();

  /// Records a read. If the read races with an earlier access, returns a text that names this access. Otherwise,
  /// returns an empty text.
  std::string read(std::uint64_t offset, std::uint64_t bytes, const Actor& actor);
  /// Records a write and marks the bytes as written. The parameters and the result are like those of read().
  std::string write(std::uint64_t offset, std::uint64_t bytes, const Actor& actor);

 private:
  struct Cell {
    Tag write = 0, read = 0;
  };
  std::byte* base_;
  std::size_t bytes_;
  std::vector<std::uint8_t> written_;
  std::vector<Cell> cells_;
};

/// All allocations of the simulated GPU.
class GlobalMemory {
 public:
  /// Forgets which threads have accessed the bytes. It is called between launches, because a Tag can tell only 2^12
  /// launches apart.
  void forget_accesses();
  void add(void* base, std::size_t bytes);
  void remove(void* base);
  /// Returns the region that contains the address, or nullptr if there is none.
  Region* find(std::uint64_t address);
  /// Returns a text that says where the address lies relative to the nearest allocation below it.
  std::string describe(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  ///< each region, by its first address
  Region* latest_ = nullptr;
};

}  // namespace cairn::tests::ptx
