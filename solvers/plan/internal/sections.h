#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// An Instance cut in time: two blocks conflict if they hold bytes during the same section. Only sections whose blocks
/// are not all in a neighbouring section are kept. Blocks without bytes are left out; fixed blocks are obstacles.
struct Sections {
  struct Part {
    std::int32_t section = 0;
    std::int64_t size = 0;  ///< bytes that the block holds during the section
  };
  struct Cover {
    std::int32_t block = 0;
    std::int64_t size = 0;
  };

  /// Cuts the instance. Memory and time O(sum over sections of the blocks and obstacles in them); `count` stays -1 if
  /// that would exceed `most`.
  Sections(const Instance& instance, std::int64_t most);

  std::int32_t count = -1;
  /// Numbers (Instance::blocks) of the blocks that have bytes and no fixed offset, by first section.
  std::vector<std::int32_t> movable;
  std::vector<std::int64_t> alignments;  ///< alignments of the movable blocks
  std::vector<std::int64_t> loads;       ///< bytes of all movable blocks in a section, by section

  /// Returns the sections of the block movable[b], ascending, with the bytes that it holds in each.
  std::span<const Part> parts(std::int32_t b) const {
    return {parts_.data() + part_begin_[b], static_cast<std::size_t>(part_begin_[b + 1] - part_begin_[b])};
  }
  /// Returns the movable blocks that hold bytes in a section, as indices into `movable`.
  std::span<const Cover> covers(std::int32_t section) const {
    return {covers_.data() + cover_begin_[section],
            static_cast<std::size_t>(cover_begin_[section + 1] - cover_begin_[section])};
  }
  /// Returns the forbidden addresses and the fixed blocks in a section, disjoint and ascending. Ranges may be empty.
  std::span<const core::AddressRange> obstacles(std::int32_t section) const {
    return {obstacles_.data() + obstacle_begin_[section],
            static_cast<std::size_t>(obstacle_begin_[section + 1] - obstacle_begin_[section])};
  }
  bool has_obstacles() const { return !obstacles_.empty(); }

  /// Whether block movable[b] has one size and consecutive sections, i.e. neither gaps nor in-place chains of different
  /// sizes.
  bool plain(std::int32_t b) const { return plain_[b]; }

 private:
  std::vector<std::int64_t> part_begin_, cover_begin_, obstacle_begin_;
  std::vector<Part> parts_;
  std::vector<Cover> covers_;
  std::vector<core::AddressRange> obstacles_;
  std::vector<bool> plain_;
};

}  // namespace cairn::solvers::plan
