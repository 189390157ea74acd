#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

/// Memory of the device with what is known of each byte: whether it was written, and which thread used it last.
namespace cairn::tests::ptx {

/// A thread at one time: accesses with an earlier epoch are over for those who waited for the thread since then.
struct Actor {
  std::uint32_t launch = 0;       ///< counted from 1
  std::uint32_t block = 0;        ///< in the grid
  std::uint32_t thread = 0;       ///< in the block
  std::uint32_t epoch = 0;        ///< of the thread
  std::uint32_t block_epoch = 0;  ///< accesses of the block's threads before this epoch are over
  std::uint32_t warp_epoch = 0;   ///< the same of the warp's threads
  bool strong = false;            ///< an atomic, volatile or ordered access: these do not race with each other
};

/// Accesses of a byte, packed: launch, block, thread, epoch, whether they are strong, and whether several threads were
/// at it.
using Tag = std::uint64_t;

/// Blocks that have waited for others by way of atomics: for each block, up to which epoch it knows the others'
/// accesses.
class BlockOrder {
 public:
  /// A thread of `block` publishes what it did before `epoch` at an address; others acquire it there.
  void release(std::uint64_t address, std::uint32_t block, std::uint32_t epoch);
  void acquire(std::uint64_t address, std::uint32_t block);
  bool knows(std::uint32_t block, std::uint32_t other, std::uint32_t epoch) const;

 private:
  using Clock = std::map<std::uint32_t, std::uint32_t>;  ///< epoch by block
  static void merge(Clock& into, const Clock& from);
  std::unordered_map<std::uint64_t, Clock> released_;
  std::unordered_map<std::uint32_t, Clock> known_;
};

/// A stretch of memory: an allocation, a block's shared memory, or a thread's local memory.
class Region {
 public:
  /// `races`: whether several threads may use it.
  Region(std::byte* base, std::size_t bytes, bool races);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }

  void mark_written(std::uint64_t offset, std::uint64_t bytes);
  void forget_written() { written_.assign(written_.size(), 0); }
  /// Whether all bytes were written; else `first` is the first offset that was not.
  bool written(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& first) const;

  /// Notes an access. Returns the thread with which it races, as text; empty: with none. `order`: of blocks; nullptr:
  /// the region belongs to one block.
  std::string read(std::uint64_t offset, std::uint64_t bytes, const Actor& actor, const BlockOrder* order);
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

/// The allocations of the device.
class GlobalMemory {
 public:
  void add(void* base, std::size_t bytes);
  void remove(void* base);
  void clear() {
    regions_.clear();
    latest_ = nullptr;
  }
  /// Finds the region that holds the address; nullptr: there is none.
  Region* find(std::uint64_t address);
  /// Describes where an address lies, for messages.
  std::string describe(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  ///< by first address
  Region* latest_ = nullptr;
};

}  // namespace cairn::tests::ptx
