#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

// This header is included under `#pragma GCC target`. The namespace has no name; lockstep_lanes.h explains why.
namespace cairn::sim {
namespace {

template <class T, int kCount>
struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * kCount), may_alias));
};

/// Returns a vector whose element i is element from[i] of `a` followed by `b`.
template <class V, class Places>
V shuffled(V a, V b, Places from) {
#ifdef __clang__
  constexpr int kCount = sizeof(V) / sizeof(a[0]);
  V result;
  for (int i = 0; i < kCount; ++i) result[i] = from[i] < kCount ? a[from[i]] : b[from[i] - kCount];
  return result;
#else
  return __builtin_shuffle(a, b, from);
#endif
}

struct FreeAligned {
  void operator()(void* memory) const { std::free(memory); }
};

/// An array of zeros, aligned to 64 bytes. Its size is rounded up so that whole vectors can be read at the end.
template <class T>
class Aligned {
 public:
  void resize(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 255) / 64 * 64;
    memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    if (!memory_) throw std::bad_alloc();
    std::memset(static_cast<void*>(memory_.get()), 0, bytes);
  }
  T* data() const { return memory_.get(); }

 private:
  std::unique_ptr<T[], FreeAligned> memory_;
};

}  // namespace
}  // namespace cairn::sim
