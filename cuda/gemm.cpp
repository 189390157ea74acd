// Computes matrix products with cuBLASLt.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/libraries.h"

namespace cairn::cuda {
namespace {

using core::ElementType;
using runtime::device::GemmOperands;
using runtime::device::GemmShape;

struct CublasLt {
  SharedLibrary library{"cuBLAS", "libcublasLt.so", CUBLAS_VER_MAJOR, "cublasLtGetVersion"};
  decltype(cublasLtGetStatusName)* status_name = library.find("cublasLtGetStatusName");
  decltype(cublasLtCreate)* create = library.find("cublasLtCreate");
  decltype(cublasLtDestroy)* destroy = library.find("cublasLtDestroy");
  decltype(cublasLtMatmul)* matmul = library.find("cublasLtMatmul");
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic = library.find("cublasLtMatmulAlgoGetHeuristic");
  decltype(cublasLtMatmulDescCreate)* create_desc = library.find("cublasLtMatmulDescCreate");
  decltype(cublasLtMatmulDescDestroy)* destroy_desc = library.find("cublasLtMatmulDescDestroy");
  decltype(cublasLtMatmulDescSetAttribute)* set_desc = library.find("cublasLtMatmulDescSetAttribute");
  decltype(cublasLtMatrixLayoutCreate)* create_layout = library.find("cublasLtMatrixLayoutCreate");
  decltype(cublasLtMatrixLayoutDestroy)* destroy_layout = library.find("cublasLtMatrixLayoutDestroy");
  decltype(cublasLtMatrixLayoutSetAttribute)* set_layout = library.find("cublasLtMatrixLayoutSetAttribute");
  decltype(cublasLtMatmulPreferenceCreate)* create_preference = library.find("cublasLtMatmulPreferenceCreate");
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference = library.find("cublasLtMatmulPreferenceDestroy");
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference = library.find("cublasLtMatmulPreferenceSetAttribute");

  CublasLt() {
    if (const std::string reason = library.why_not(); !reason.empty()) throw core::DeviceError(reason);
  }
};

/// Returns cuBLASLt's functions. The first call loads the library. Throws DeviceError if the library is missing.
const CublasLt& cublas_lt() {
  static const CublasLt lt;
  return lt;
}

/// Throws DeviceError "<what>: <name of the status>" unless the call succeeded. `what` is a function, so that its text
/// is composed only if there is an error.
template <typename What>
void check(cublasStatus_t status, const What& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  cudaGetLastError();  // clears an error that cuBLAS may have left
  throw core::DeviceError(what() + ": " + cublas_lt().status_name(status));
}

template <auto kDestroy>
struct CublasLtDeleter {
  template <typename T>
  void operator()(T* handle) const noexcept {
    (cublas_lt().*kDestroy)(handle);  // the library is loaded, because a handle exists
  }
};

using CublasLtHandle = std::unique_ptr<cublasLtContext, CublasLtDeleter<&CublasLt::destroy>>;
using ProductDesc = std::unique_ptr<cublasLtMatmulDescOpaque_t, CublasLtDeleter<&CublasLt::destroy_desc>>;
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CublasLtDeleter<&CublasLt::destroy_layout>>;
using ProductPreference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CublasLtDeleter<&CublasLt::destroy_preference>>;

std::string describe(const GemmShape& shape) {
  std::string text = "matrix product of m " + std::to_string(shape.m) + ", n " + std::to_string(shape.n) + ", k " +
                     std::to_string(shape.k) + ", batch " + std::to_string(shape.batch) + " (" +
                     std::string(core::to_string(shape.type));
  if (shape.tf32) text += ", TF32";
  if (shape.trans_a) text += ", A transposed";
  if (shape.trans_b) text += ", B transposed";
  if (shape.bias) text += ", bias";
  if (shape.accumulate) text += ", accumulated";
  return text + ")";
}

void check_shape(const GemmShape& shape) {
  const bool typed = shape.type == ElementType::f32 || shape.type == ElementType::bf16;
  const bool apart = shape.stride_of_a() >= shape.row_of_a() && shape.stride_of_b() >= shape.row_of_b() &&
                     shape.stride_of_c() >= shape.n;
  if (!typed || !apart || std::min({shape.batch, shape.m, shape.n, shape.k}) < 1 || (shape.bias && shape.accumulate))
    throw core::InputError(describe(shape) + ": no such product is defined");
}

struct Product {
  ProductDesc desc;
  MatrixLayout left, right, out;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
};

/// Sets attributes of cuBLASLt's descriptors. If a call fails, the error names the shape.
class ProductBuilder {
 public:
  explicit ProductBuilder(const GemmShape& shape) : shape_(shape) {}

  void check(cublasStatus_t status) const {
    cuda::check(status, [&] { return describe(shape_); });
  }

  ProductDesc desc(cublasComputeType_t compute) const {
    cublasLtMatmulDesc_t desc = nullptr;
    check(lt_.create_desc(&desc, compute, CUDA_R_32F));
    return ProductDesc(desc);
  }

  /// Creates the layout of an operand: one column-major matrix of rows x columns for each product of the batch.
  /// `stride` is the number of elements from one column to the next.
  MatrixLayout layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t stride) const {
    cublasLtMatrixLayout_t created = nullptr;
    check(lt_.create_layout(&created, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                            stride));
    MatrixLayout layout(created);
    if (shape_.batch > 1) {
      set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch_count());
      set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride * columns);
    }
    return layout;
  }

  ProductPreference preference() const {
    cublasLtMatmulPreference_t preference = nullptr;
    check(lt_.create_preference(&preference));
    return ProductPreference(preference);
  }

  template <typename Value>
  void set(const ProductDesc& desc, cublasLtMatmulDescAttributes_t name, const Value& value) const {
    check(lt_.set_desc(desc.get(), name, &value, sizeof(value)));
  }
  template <typename Value>
  void set(const MatrixLayout& layout, cublasLtMatrixLayoutAttribute_t name, const Value& value) const {
    check(lt_.set_layout(layout.get(), name, &value, sizeof(value)));
  }
  template <typename Value>
  void set(const ProductPreference& preference, cublasLtMatmulPreferenceAttributes_t name, const Value& value) const {
    check(lt_.set_preference(preference.get(), name, &value, sizeof(value)));
  }

 private:
  std::int32_t batch_count() const {
    if (shape_.batch > std::numeric_limits<std::int32_t>::max())
      throw core::DeviceError(describe(shape_) + ": cuBLAS takes no batch of more than 2^31 - 1");
    return static_cast<std::int32_t>(shape_.batch);
  }

  const GemmShape& shape_;
  const CublasLt& lt_ = cublas_lt();
};

/// Alignment in bytes of every operand of a product.
constexpr std::uint32_t kAlignment = 16;

/// Sets `product.algorithm` to the algorithm that cuBLASLt expects to be fastest, among those that give the same bits
/// every time and need at most `workspace_limit` bytes of workspace. Returns false if there is no such algorithm.
bool choose_algorithm(const ProductBuilder& builder, cublasLtHandle_t handle, std::int64_t workspace_limit,
                      Product& product) {
  const ProductPreference preference = builder.preference();
  builder.set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_limit));
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    builder.set(preference, name, kAlignment);
  // An algorithm can split k, the summed dimension, into parts. Only one way to add the parts' sums is allowed here:
  // the sums are stored as fp32 in the workspace, and a separate step adds them, so that the order is fixed. All other
  // schemes store the parts' sums in the output's type, which would round bf16 sums more than once. The scheme INPLACE
  // has a second drawback: the order in which it adds the parts is not documented. Algorithms that do not split k
  // (scheme NONE, value 0) are always allowed.
  builder.set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
              static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

  std::array<cublasLtMatmulHeuristicResult_t, 8> results{};  // the algorithm with the least estimated time first
  int count = 0;
  const cublasStatus_t status =
      cublas_lt().heuristic(handle, product.desc.get(), product.left.get(), product.right.get(), product.out.get(),
                            product.out.get(), preference.get(), results.size(), results.data(), &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) builder.check(status);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > static_cast<std::size_t>(workspace_limit))
      continue;
    product.algorithm = result.algo;
    product.workspace = result.workspaceSize;
    return true;
  }
  return false;
}

// cuBLASLt expects column-major matrices. A dense row-major r x c matrix X, read as column-major with leading dimension
// c, is X^T, a c x r matrix. So our C is read as C^T, and C^T = op(B)^T op(A)^T. This is an n x m product with the left
// factor op(B)^T (n x k) and the right factor op(A)^T (k x m).
//   Left:  B stored k x n is read as n x k, which is op(B)^T. B stored n x k (trans_b) is read as k x n and must be
//          transposed.
//   Right: A stored m x k is read as k x m, which is op(A)^T. A stored k x m (trans_a) is read as m x k and must be
//          transposed.
// The epilogue adds element i of the bias to all of row i of C^T, which is column i of C. So the bias has n elements,
// as GemmShape requires.
std::optional<Product> make_product(const GemmShape& shape, cublasLtHandle_t handle, std::int64_t workspace_limit) {
  check_shape(shape);
  const bool bf16 = shape.type == ElementType::bf16;
  const cudaDataType_t type = bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const ProductBuilder builder(shape);

  Product product;
  product.desc = builder.desc(shape.tf32 && !bf16 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
  builder.set(product.desc, CUBLASLT_MATMUL_DESC_TRANSA, shape.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  builder.set(product.desc, CUBLASLT_MATMUL_DESC_TRANSB, shape.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (shape.bias) {
    builder.set(product.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // The choice of the algorithm only uses the alignment of this pointer; it does not access memory. So any aligned
    // address will do.
    builder.set(product.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{kAlignment});
  }
  product.left = builder.layout(type, shape.row_of_b(), shape.trans_b ? shape.n : shape.k, shape.stride_of_b());
  product.right = builder.layout(type, shape.row_of_a(), shape.trans_a ? shape.k : shape.m, shape.stride_of_a());
  product.out = builder.layout(type, shape.n, shape.m, shape.stride_of_c());
  if (!choose_algorithm(builder, handle, workspace_limit, product)) return std::nullopt;
  return product;
}

CublasLtHandle make_handle() {
  cublasLtHandle_t handle = nullptr;
  check(cublas_lt().create(&handle), [] { return std::string("cuBLAS does not start on this machine"); });
  return CublasLtHandle(handle);
}

}  // namespace

struct Gemms::Impl {
  std::int64_t workspace_limit;
  CublasLtHandle handle = make_handle();
  Plans<GemmShape, std::optional<Product>> products = {};  // nullopt for shapes for which cuBLASLt has no algorithm
  Plans<GemmShape, bool> tiled = {};
  Plans<std::pair<ElementType, bool>, Ceilings> reached = {};  // key: the type, and whether TF32 is allowed

  const std::optional<Product>& find(const GemmShape& wanted) {
    return products.of(wanted,
                       [&](const GemmShape& shape) { return make_product(shape, handle.get(), workspace_limit); });
  }
  const Product& product(const GemmShape& shape) {
    if (const std::optional<Product>& found = find(shape)) return *found;
    throw core::DeviceError(describe(shape) + ": cuBLAS has no algorithm for it within " +
                            std::to_string(workspace_limit) + " bytes of workspace");
  }
};

Gemms::Gemms(std::int64_t workspace_limit_bytes)
    : impl_(new Impl{.workspace_limit = std::max<std::int64_t>(workspace_limit_bytes, 0)}) {}
Gemms::~Gemms() = default;

std::int64_t Gemms::workspace(const GemmShape& shape) {
  return static_cast<std::int64_t>(impl_->product(shape).workspace);
}

bool Gemms::adds_bias(const GemmShape& shape) { return impl_->find(shape).has_value(); }

bool Gemms::in_tiles(const GemmShape& wanted) {
  return impl_->tiled.of(wanted, [&](const GemmShape& shape) { return tiles_pay(*this, shape); });
}

const Ceilings& Gemms::ceilings(ElementType type, bool tf32) {
  return impl_->reached.of({type, tf32}, [&](const auto& of) { return measure_ceilings(*this, of.first, of.second); });
}

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  const Product& product = impl_->product(shape);
  const CublasLt& lt = cublas_lt();
  const auto what = [&] { return describe(shape); };
  if (shape.bias)
    check(lt.set_desc(product.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias, sizeof(operands.bias)),
          what);
  const float beta = shape.accumulate ? 1 : 0;  // with 0, C is not read
  check(lt.matmul(impl_->handle.get(), product.desc.get(), &operands.alpha, operands.b, product.left.get(), operands.a,
                  product.right.get(), &beta, operands.c, product.out.get(), operands.c, product.out.get(),
                  &product.algorithm, workspace, product.workspace, stream),
        what);
}

}  // namespace cairn::cuda
