#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Memory of the simulated GPU, in which races and reads of unwritten bytes are found. For each byte it is recorded
/// whether the byte was written, and who wrote it and who read it last.
///
/// Every block counts epochs. A thread enters a new epoch when it waits for other threads or executes a fence. An
/// access is over for a thread if it surely precedes whatever the thread does next. This is so if the access was in an
/// earlier launch, or if its thread and this thread have waited for each other since. An access that is over takes
/// part in no race.
namespace cairn::tests::ptx {

inline constexpr int kLaunchBits = 12;  ///< bits of the number of a launch that are remembered for an access

/// The first epoch that is not over, for each thread, warp and whole block that published its accesses.
using Clock = std::map<std::uint64_t, std::uint32_t>;
/// What a thread has acquired from others; nullptr: nothing. Threads that have waited for each other share it.
using Known = std::shared_ptr<const Clock>;
/// Returns a clock for what is known to either of the two.
Known both(const Known& a, const Known& b);

/// A thread at the time of an access. Three of its epochs say which accesses of other threads are over for it.
struct Actor {
  std::uint32_t launch = 0;       ///< number of the launch, counted from 1
  std::uint32_t block = 0;        ///< number of the block in the grid
  std::uint32_t thread = 0;       ///< number of the thread in the block
  std::uint32_t epoch = 0;        ///< epoch of the thread
  std::uint32_t block_epoch = 0;  ///< accesses of the block's threads before this epoch are over
  std::uint32_t warp_epoch = 0;   ///< accesses of the warp's threads before this epoch are over
  std::uint32_t part_epoch = 0;   ///< accesses of the lanes in `part` before this epoch are over
  std::uint32_t part = 0;         ///< lanes with which the thread waited last; one bit a lane
  const Clock* known = nullptr;   ///< what the thread has acquired; nullptr: nothing
  /// Whether the access is atomic, volatile or ordered. Such accesses do not race with each other.
  bool strong = false;
  bool narrow = false;  ///< whether the access is strong for threads of its block only (.cta)
};

/// The latest accesses to a byte, packed into one word: their launch, block, thread and epoch, whether they are strong,
/// and whether several threads made them. 0 stands for no access.
using Tag = std::uint64_t;

/// A thread at its latest fence, and what it had acquired by then. The epoch is 0 if there was no fence.
struct LatestFence {
  Actor actor;
  Known known;
};

/// The order that fences and strong accesses give to accesses of other threads. A thread that writes to an address
/// after a fence publishes accesses there: its own before the fence, and those that are over for it at the fence. If
/// another thread reads the address and then executes a fence, it acquires these accesses: they are then over for it,
/// too. A fence or an access of the block's scope (.cta) publishes for threads of its block only, and acquires from
/// them only.
class FenceOrder {
 public:
  /// Publishes at the address, for the whole device or for the fence's block.
  void release(std::uint64_t address, const LatestFence& fence, bool whole_device);
  /// Returns `known` and what was published at the address for this block or, if `whole_device`, for all.
  Known acquire(std::uint64_t address, std::uint32_t block, bool whole_device, const Known& known) const;

 private:
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};  ///< stands for the whole device in place of a block
  std::map<std::pair<std::uint64_t, std::uint32_t>, Known> released_;
};

/// A contiguous part of memory: an allocation, a block's shared memory, or a thread's local memory.
class Region {
 public:
  /// Creates a region. If `races` is false, only one thread uses the region, so races need not be found.
  Region(std::byte* base, std::size_t bytes, bool races);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  /// Returns the offset of an address in the region.
  std::uint64_t offset_of(std::uint64_t address) const { return address - reinterpret_cast<std::uint64_t>(base_); }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }

  void mark_written(std::uint64_t offset, std::uint64_t bytes);
  void mark_unwritten(std::uint64_t offset, std::uint64_t bytes);
  /// Returns whether all these bytes were written. If not, sets `first` to the offset of the first unwritten byte.
  bool written(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& first) const;

  /// Forgets who accessed the bytes.
  void forget_accesses();

  /// Records a read. Returns a text that names the access with which the read races, or an empty text if there is no
  /// race.
  std::string read(std::uint64_t offset, std::uint64_t bytes, const Actor& actor);
  /// Records a write and marks its bytes as written. Parameters and result are those of read().
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

/// The allocations of the simulated GPU.
class GlobalMemory {
 public:
  /// Forgets who accessed the bytes. Called between launches, because a Tag has room for 2^12 launches only.
  void forget_accesses();
  void add(void* base, std::size_t bytes);
  void remove(void* base);
  /// Returns the region that contains the address, or nullptr if there is none.
  Region* find(std::uint64_t address);
  /// Returns a text that says where the address is, relative to the nearest allocation below it.
  std::string describe(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  ///< regions by their first addresses
  Region* latest_ = nullptr;
};

}  // namespace cairn::tests::ptx
