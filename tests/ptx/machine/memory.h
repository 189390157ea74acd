#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

/// Memory of the simulated GPU, in which races and reads of unwritten bytes are found. For each byte it is recorded
/// whether the byte was written, and who wrote it and who read it last.
///
/// Every block counts epochs. A thread enters a new epoch when it waits for other threads or executes a fence. An
/// access is over for a thread if it surely precedes whatever the thread does next. This is so if the access was in an
/// earlier launch, or if its thread and this thread have waited for each other since. An access that is over takes
/// part in no race.
namespace cairn::tests::ptx {

/// A thread at the time of an access.
struct Actor {
  std::uint32_t launch = 0;       ///< number of the launch, counted from 1
  std::uint32_t block = 0;        ///< number of the block in the grid
  std::uint32_t thread = 0;       ///< number of the thread in the block
  std::uint32_t epoch = 0;        ///< epoch of the thread
  std::uint32_t block_epoch = 0;  ///< accesses by threads of the block before this epoch are over
  std::uint32_t warp_epoch = 0;   ///< accesses by threads of the warp before this epoch are over
  bool strong = false;            ///< whether the access is atomic, volatile or ordered; such accesses do not race with
                                  ///< each other
};

/// The latest accesses to a byte, packed into one word: their launch, block, thread and epoch, whether they are strong,
/// and whether several threads made them. 0 stands for no access.
using Tag = std::uint64_t;

/// The order of accesses in different blocks, which wait for each other only by strong accesses to memory. For each
/// block, the object has the epochs of the other blocks before which accesses are over.
class BlockOrder {
 public:
  /// Records that a thread of `block` publishes at the address what it did before `epoch`.
  void release(std::uint64_t address, std::uint32_t block, std::uint32_t epoch);
  /// Records that a thread of `block` reads at the address. What was published there is over for the block.
  void acquire(std::uint64_t address, std::uint32_t block);
  /// Returns whether accesses by block `other` in `epoch` are over for `block`.
  bool knows(std::uint32_t block, std::uint32_t other, std::uint32_t epoch) const;

 private:
  using Clock = std::map<std::uint32_t, std::uint32_t>;  ///< for each block, the first epoch that is not over
  static void merge(Clock& into, const Clock& from);
  std::unordered_map<std::uint64_t, Clock> released_;
  std::unordered_map<std::uint32_t, Clock> known_;
};

/// A contiguous part of memory: an allocation, a block's shared memory, or a thread's local memory.
class Region {
 public:
  /// Creates a region. If `races` is false, only one thread uses the region, so races need not be found.
  Region(std::byte* base, std::size_t bytes, bool races);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }

  void mark_written(std::uint64_t offset, std::uint64_t bytes);
  void forget_written() { written_.assign(written_.size(), 0); }
  /// Returns whether all these bytes were written. If not, sets `first` to the offset of the first unwritten byte.
  bool written(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& first) const;

  /// Records a read. Returns a text that names the access with which the read races, or an empty text if there is no
  /// race. `order` is the order of the blocks, or nullptr if only one block uses the region.
  std::string read(std::uint64_t offset, std::uint64_t bytes, const Actor& actor, const BlockOrder* order);
  /// Records a write and marks its bytes as written. Parameters and result are those of read().
  std::string write(std::uint64_t offset, std::uint64_t bytes, const Actor& actor, const BlockOrder* order);

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
  void add(void* base, std::size_t bytes);
  void remove(void* base);
  void clear() {
    regions_.clear();
    latest_ = nullptr;
  }
  /// Returns the region that contains the address, or nullptr if there is none.
  Region* find(std::uint64_t address);
  /// Returns a text that says where the address is, relative to the nearest allocation below it.
  std::string describe(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  ///< regions by their first addresses
  Region* latest_ = nullptr;
};

}  // namespace cairn::tests::ptx
