#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/runtime/scratch.h"

/// This file declares the interface to a library that computes matrix products and convolutions. On a GPU, this is the
/// vendor's library if there is one.
namespace cairn::runtime::device {

/// A product C = alpha op(A) op(B) (+ bias) (+ C). Matrices are row-major, with contiguous rows and batches. op(A) is m
/// x k; with trans_a, A is stored as k x m. op(B) is k x n; with trans_b, B is stored as n x k. The bias has n elements
/// and is added to every row. All tensors have the same type, f32 or bf16; sums are fp32. A library may round a bf16
/// product before it adds the bias or C.
struct GemmShape {
  bool trans_a = false, trans_b = false;
  bool bias = false;
  bool accumulate = false;  ///< whether to add to the contents of C; not together with a bias
  bool tf32 = false;        ///< factors may be rounded to TF32; f32 only
  core::ElementType type = core::ElementType::f32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  /// Number of elements from the start of one stored row of A, B or C to the start of the next. 0 means that rows are
  /// contiguous.
  std::int64_t lda = 0, ldb = 0, ldc = 0;

  std::int64_t row_of_a() const { return trans_a ? m : k; }
  std::int64_t row_of_b() const { return trans_b ? k : n; }
  std::int64_t stride_of_a() const { return lda > 0 ? lda : row_of_a(); }
  std::int64_t stride_of_b() const { return ldb > 0 ? ldb : row_of_b(); }
  std::int64_t stride_of_c() const { return ldc > 0 ? ldc : n; }

  auto operator<=>(const GemmShape&) const = default;
};

struct GemmOperands {
  float alpha = 1;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
};

enum class ConvKind : std::uint8_t {
  forward,      ///< y = x * w
  grad_input,   ///< dx from dy, w
  grad_weight,  ///< dw from dy, x
};

/// A convolution without bias. x is [images, in_h, in_w, in_c], w is [out_c, kernel_h, kernel_w, in_c], and y is
/// [images, out_h, out_w, out_c]. x is padded with `pad` zeros on every side. The kernel is not flipped, so
/// mathematically this is a cross-correlation.
struct ConvShape {
  ConvKind kind = ConvKind::forward;
  bool tf32 = false;  ///< factors may be rounded to TF32; f32 only
  core::ElementType type = core::ElementType::f32;
  std::int64_t images = 0, in_h = 0, in_w = 0, in_c = 0;
  std::int64_t kernel_h = 0, kernel_w = 0;
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  std::int64_t stride = 1, pad = 0;

  auto operator<=>(const ConvShape&) const = default;
};

/// The two tensors that a convolution reads, and the tensor that it writes:
/// - forward: reads x and w, writes y;
/// - grad_input: reads dy and w, writes dx;
/// - grad_weight: reads dy and x, writes dw.
struct ConvOperands {
  const void* first = nullptr;
  const void* second = nullptr;
  void* out = nullptr;
};

class Library {
 public:
  virtual ~Library() = default;

  /// Returns the bytes of workspace that gemm() needs. The workspace must be aligned to 256 bytes.
  virtual std::int64_t gemm_workspace(const GemmShape& shape) = 0;
  /// Returns whether gemm() can add the bias of this product. If not, callers must compute the product without the bias
  /// and add the bias themselves.
  virtual bool gemm_adds_bias(const GemmShape& shape) = 0;
  virtual void gemm(const GemmShape& shape, const GemmOperands& operands, void* workspace) = 0;
  /// Returns whether a product should be computed in tiles (matmul.h), because tiles are faster than one call of
  /// gemm(). Called only for products whose rows do not all begin at multiples of 16 bytes.
  virtual bool gemm_in_tiles(const GemmShape& shape) = 0;
  /// Returns the bytes of workspace with which conv() computes a convolution. Returns nullopt if the convolution is to
  /// be computed as matrix products over patches (conv.h) instead. `scratch` is the number of bytes of scratch that the
  /// op has: with more workspace, the library can have a faster algorithm. If `scratch` is nullopt, the library chooses
  /// the algorithm.
  virtual std::optional<std::int64_t> conv_workspace(const ConvShape& shape, std::optional<std::int64_t> scratch) = 0;
  /// Computes a convolution. `workspace_bytes` is what conv_workspace() returned; this number identifies the algorithm.
  virtual void conv(const ConvShape& shape, const ConvOperands& operands, void* workspace,
                    std::int64_t workspace_bytes) = 0;
  /// Returns the ways in which the library can compute a convolution, which differ in scratch and time.
  virtual std::vector<ScratchVariant> conv_variants(const ConvShape& shape) = 0;
};

}  // namespace cairn::runtime::device
