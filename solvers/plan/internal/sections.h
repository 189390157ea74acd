#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// An Instance whose time axis is divided into sections. Two blocks conflict if they hold bytes during the same
/// section. A section is left out if all its blocks are also in a neighbouring section. Blocks without bytes are left
/// out. Fixed blocks become obstacles.
struct Sections {
  struct Part {
    std::int32_t section = 0;
    std::int64_t size = 0;  ///< bytes that the block holds during the section
  };
  struct Cover {
    std::int32_t block = 0;
    std::int64_t size = 0;
  };

  /// Divides the instance into sections. Time and memory are O(sum over all sections of their blocks and obstacles). If
  /// that sum would exceed `most`, the constructor gives up and leaves `count` at -1.
  Sections(const Instance& instance, std::int64_t most);

  std::int32_t count = -1;
  /// Numbers (Instance::blocks) of the blocks that have bytes and no fixed offset, ordered by first section.
  std::vector<std::int32_t> movable;
  std::vector<std::int64_t> alignments;  ///< alignments of the movable blocks
  std::vector<std::int64_t> loads;       ///< for each section, the bytes of all its movable blocks

  /// Returns the sections of the block movable[b], ascending, with the bytes that it holds in each.
  std::span<const Part> parts(std::int32_t b) const {
    return {parts_.data() + part_begin_[b], static_cast<std::size_t>(part_begin_[b + 1] - part_begin_[b])};
  }
  /// Returns the movable blocks that hold bytes in a section, as indices into `movable`.
  std::span<const Cover> covers(std::int32_t section) const {
    return {covers_.data() + cover_begin_[section],
            static_cast<std::size_t>(cover_begin_[section + 1] - cover_begin_[section])};
  }
  /// Returns the address ranges of the forbidden addresses and the fixed blocks in a section, disjoint and ascending. A
  /// range may be empty.
  std::span<const core::AddressRange> obstacles(std::int32_t section) const {
    return {obstacles_.data() + obstacle_begin_[section],
            static_cast<std::size_t>(obstacle_begin_[section + 1] - obstacle_begin_[section])};
  }
  bool has_obstacles() const { return !obstacles_.empty(); }

  /// Returns whether block movable[b] has one size and consecutive sections. This is false for blocks with gaps, and
  /// for in-place blocks whose buffers differ in size.
  bool plain(std::int32_t b) const { return plain_[b]; }

 private:
  std::vector<std::int64_t> part_begin_, cover_begin_, obstacle_begin_;
  std::vector<Part> parts_;
  std::vector<Cover> covers_;
  std::vector<core::AddressRange> obstacles_;
  std::vector<bool> plain_;
};

}  // namespace cairn::solvers::plan
