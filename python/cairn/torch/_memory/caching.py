"""Simulates the allocator that PyTorch uses on GPUs, to find how many bytes it reserves for a sequence of allocations.

The allocator takes *segments* of memory from the driver, hands out *blocks*, which are parts of segments, and keeps
freed blocks for later allocations. It reserves more than is in use, because free blocks may be too small or too
scattered. The simulation follows c10/cuda/CUDACachingAllocator.cpp (torch 2.3 to 2.15) for one stream, with its default
settings or with expandable_segments:True.
"""

import bisect

import cairn

# All constants are in bytes, and have the names that they have in CUDACachingAllocator.cpp.
MIN_BLOCK_SIZE = 512  # sizes are multiples of this
SMALL_SIZE = 1 << 20  # blocks up to this size are "small", and are in other segments than large blocks
SMALL_BUFFER = 2 << 20  # size of a segment of small blocks
LARGE_BUFFER = 20 << 20  # size of a segment of large blocks, if it is made for a block below MIN_LARGE_ALLOC
MIN_LARGE_ALLOC = 10 << 20
ROUND_LARGE = 2 << 20  # all other segments are multiples of this
# Size of the range of addresses of an expandable segment. It is larger than the memory of every device, and a multiple
# of the sizes of all chunks, which are the units in which memory is mapped to the range.
_ADDRESS_SPACE = LARGE_BUFFER << 26


class OutOfMemory(cairn.Error):
    """Raised if an allocation does not fit, even after all free segments have been given back to the driver."""


class _Block:
    """A range of addresses of a segment. ``before`` and ``behind`` are its neighbours in this segment."""

    __slots__ = ("address", "size", "pool", "before", "behind", "used", "mapped")

    def __init__(self, address, size, pool, mapped=True):
        self.address, self.size, self.pool, self.mapped = address, size, pool, mapped
        self.before = self.behind = None
        self.used = False

    def key(self):
        return self.size, self.address

    def expandable_size(self):
        return self.size + (self.behind.size if self.behind is not None and not self.behind.mapped else 0)


class _Pool:
    """The free and the unmapped blocks of one kind: small or large."""

    def __init__(self, is_small):
        self.is_small = is_small
        self.free = []  # (size, address) of free blocks, sorted
        self.blocks = {}  # address -> free block
        self.unmapped = []  # only for expandable segments: blocks to which no memory is mapped, by address
        self.chunk = SMALL_BUFFER if is_small else LARGE_BUFFER  # unit in which expandable segments grow

    def add(self, block):
        bisect.insort(self.free, block.key())
        self.blocks[block.address] = block

    def remove(self, block):
        del self.free[bisect.bisect_left(self.free, block.key())]
        del self.blocks[block.address]

    def best_fit(self, size, expandable):
        """Returns the smallest free block of at least ``size`` bytes; None if there is none. Among equally small
        blocks, takes the one with the lowest address. When blocks of expandable segments are compared, unmapped memory
        that directly follows a block counts as a part of the block."""
        i = bisect.bisect_left(self.free, (size, 0))
        if i == len(self.free):
            return None
        block = self.blocks[self.free[i][1]]
        while expandable and i + 1 < len(self.free):
            i += 1
            following = self.blocks[self.free[i][1]]
            if following.expandable_size() >= block.expandable_size():
                break
            block = following
        return block


class CachingAllocator:
    """Simulates the allocator. ``allocate(size)`` returns a handle, which ``free(handle)`` takes. ``capacity``: bytes
    of the device; None: unlimited.

    ``reserved`` and ``in_use`` are the present numbers of bytes. ``peak_reserved`` and ``peak_in_use`` are the largest
    values that these numbers have had.
    """

    def __init__(self, capacity=None, expandable_segments=False):
        self.capacity, self.expandable = capacity, expandable_segments
        self.pools = _Pool(True), _Pool(False)
        self.reserved = self.in_use = self.peak_reserved = self.peak_in_use = 0
        self._next_address = 0

    def allocate(self, size):
        """Allocates ``size`` bytes, and returns the block. Returns None for 0 bytes, which take no block. Raises
        OutOfMemory if the memory does not suffice."""
        if size <= 0:
            return None
        size = -(-size // MIN_BLOCK_SIZE) * MIN_BLOCK_SIZE
        pool = self.pools[0] if size <= SMALL_SIZE else self.pools[1]
        block = pool.best_fit(size, self.expandable)
        if block is not None:
            pool.remove(block)
        else:
            block = self._grow(pool, size) or self._retry(pool, size)
        if self._is_split(block, size):
            self._split(block, size, free=True)
        block.used = True
        self.in_use += block.size
        self.peak_in_use = max(self.peak_in_use, self.in_use)
        return block

    def free(self, block):
        if block is None:
            return
        block.used = False
        self.in_use -= block.size
        block.pool.add(self._merged(block))

    def give_back(self):
        """Gives all free memory back to the driver, as torch.cuda.empty_cache() does: whole segments or, if segments
        are expandable, whole chunks."""
        for pool in self.pools:
            for block in list(pool.blocks.values()):
                if self.expandable:
                    self._unmap(block)
                elif block.before is None and block.behind is None:
                    pool.remove(block)
                    self.reserved -= block.size

    # --- Segments

    def _retry(self, pool, size):
        self.give_back()
        block = self._grow(pool, size)
        if block is None:
            raise OutOfMemory(f"{size} bytes cannot be allocated: {self.reserved} of {self.capacity} bytes are reserved, of which "
                              f"{self.in_use} are in use")
        return block

    def _grow(self, pool, size):
        """Returns a new block of at least ``size`` bytes, which is not in the pool's lists yet; None if the device has
        too little memory."""
        if self.expandable:
            return self._grow_expandable(pool, size)
        wanted = (SMALL_BUFFER if size <= SMALL_SIZE else LARGE_BUFFER if size < MIN_LARGE_ALLOC else
                  -(-size // ROUND_LARGE) * ROUND_LARGE)
        if not self._reserve(wanted):
            return None
        block = _Block(self._next_address, wanted, pool)
        self._next_address += wanted
        return block

    def _reserve(self, size):
        if self.capacity is not None and self.reserved + size > self.capacity:
            return False
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return True

    # --- Expandable segments: one range of addresses for each pool, of which chunks are mapped to memory

    def _grow_expandable(self, pool, size):
        block = self._place_to_grow(pool, size)
        if not block.mapped:
            if not self._map(block, min(block.size, size)):
                return None
            block = self._merged(block)
        else:
            pool.remove(block)
        while block.size < size:
            behind = block.behind
            if not behind.mapped:
                if not self._map(behind, min(behind.size, size - block.size)):
                    pool.add(block)
                    return None
                pool.add(behind)
            block = self._merged(block)
        return block

    def _place_to_grow(self, pool, size):
        """Returns the first block of the first run of neighbouring free or unmapped blocks that have ``size`` bytes
        together."""
        for block in pool.unmapped:
            if block.before is not None and not block.before.used:
                block = block.before
            total, last = 0, block
            while last is not None and not last.used and total < size:
                total, last = total + last.size, last.behind
            if total >= size:
                return block
        block = _Block(self._next_address, _ADDRESS_SPACE, pool, mapped=False)
        self._next_address += block.size
        pool.unmapped.append(block)
        return block

    def _map(self, block, size):
        """Gives memory to the first ``size`` bytes of an unmapped block, in whole chunks."""
        chunk = block.pool.chunk
        size = min(-(-size // chunk) * chunk, block.size)
        if not self._reserve(size):
            return False
        block.pool.unmapped.remove(block)
        block.mapped = True
        if size < block.size:
            self._split(block, size, free=False)
        return True

    def _unmap(self, block):
        """Takes away the memory of a free block, as far as it consists of whole chunks."""
        pool, chunk = block.pool, block.pool.chunk
        begin = -(-block.address // chunk) * chunk
        end = (block.address + block.size) // chunk * chunk
        if begin >= end:
            return
        pool.remove(block)
        if begin > block.address:
            rest = self._split(block, begin - block.address, free=False, mapped=True)
            pool.add(block)
            block = rest
        if end < block.address + block.size:
            pool.add(self._split(block, end - block.address, free=False, mapped=True))
        block.mapped = False
        self.reserved -= block.size
        bisect.insort(pool.unmapped, self._merged(block), key=lambda b: b.address)

    # --- Blocks

    def _is_split(self, block, size):
        left = block.size - size
        return left >= MIN_BLOCK_SIZE if block.pool.is_small or self.expandable else left > SMALL_SIZE

    def _split(self, block, size, free, mapped=None):
        """Cuts a block after its first ``size`` bytes. Returns the rest as a block. ``free``: whether the rest is put
        into the pool's list of free blocks. ``mapped``: whether the rest has memory; None: as ``free``."""
        rest = _Block(block.address + size, block.size - size, block.pool, mapped=free if mapped is None else mapped)
        rest.before, rest.behind = block, block.behind
        if block.behind is not None:
            block.behind.before = rest
        block.behind, block.size = rest, size
        if free:
            block.pool.add(rest)
        elif not rest.mapped:
            bisect.insort(block.pool.unmapped, rest, key=lambda b: b.address)
        return rest

    def _merged(self, block):
        """Merges a free block with its free neighbours, or an unmapped block with its unmapped neighbours. The block
        must not be in the pool's lists. Returns the merged block."""
        for other in (block.before, block.behind):
            if other is None or other.used or other.mapped != block.mapped:
                continue
            if other.mapped:
                block.pool.remove(other)
            else:
                block.pool.unmapped.remove(other)
            if other is block.before:
                block.address, block.before = other.address, other.before
                if block.before is not None:
                    block.before.behind = block
            else:
                block.behind = other.behind
                if block.behind is not None:
                    block.behind.before = block
            block.size += other.size
        return block
