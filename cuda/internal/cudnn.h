#pragma once

// This header wraps cuDNN's backend API, which describes convolutions as graphs. It is included only if the build has
// cuDNN's headers.
#include <cudnn_graph.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cairn/cuda/internal/libraries.h"

namespace cairn::cuda {

struct Cudnn {
  SharedLibrary library{"cuDNN", "libcudnn.so", CUDNN_MAJOR, "cudnnGetVersion"};
  decltype(cudnnGetErrorString)* error_string = library.find("cudnnGetErrorString");
  decltype(cudnnCreate)* create = library.find("cudnnCreate");
  decltype(cudnnDestroy)* destroy = library.find("cudnnDestroy");
  decltype(cudnnSetStream)* set_stream = library.find("cudnnSetStream");
  decltype(cudnnBackendCreateDescriptor)* create_descriptor = library.find("cudnnBackendCreateDescriptor");
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor = library.find("cudnnBackendDestroyDescriptor");
  decltype(cudnnBackendFinalize)* finalize = library.find("cudnnBackendFinalize");
  decltype(cudnnBackendSetAttribute)* set_attribute = library.find("cudnnBackendSetAttribute");
  decltype(cudnnBackendGetAttribute)* get_attribute = library.find("cudnnBackendGetAttribute");
  decltype(cudnnBackendExecute)* execute = library.find("cudnnBackendExecute");
};

/// Returns cuDNN's functions. The first call in a process loads the library.
const Cudnn& cudnn();

struct CudnnFailure {
  cudnnStatus_t status;
};

/// Throws CudnnFailure unless the call succeeded.
inline void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnFailure{status};
}

/// These functions return cuDNN's constant for the C++ type of an attribute.
constexpr cudnnBackendAttributeType_t attribute_type(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t attribute_type(float) { return CUDNN_TYPE_FLOAT; }
constexpr cudnnBackendAttributeType_t attribute_type(void*) { return CUDNN_TYPE_VOID_PTR; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }

/// Owns a descriptor of cuDNN's backend API. Attributes must be set between construction and finalize(). Functions
/// throw CudnnFailure.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t created = nullptr;
    check(cudnn().create_descriptor(type, &created));
    descriptor_.reset(created);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }
  void finalize() { check(cudnn().finalize(get())); }

  template <typename Value, std::size_t N>
  void set(cudnnBackendAttributeName_t name, const std::array<Value, N>& values) {
    check(cudnn().set_attribute(get(), name, attribute_type(Value{}), N, values.data()));
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, Value value) {
    set(name, std::array{value});
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    const cudnnBackendDescriptor_t descriptor = other.get();
    check(cudnn().set_attribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor));
  }

  std::int64_t get_integer(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    check(cudnn().get_attribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value));
    return value;
  }

 private:
  struct Deleter {
    void operator()(cudnnBackendDescriptor_t descriptor) const noexcept { cudnn().destroy_descriptor(descriptor); }
  };
  std::unique_ptr<void, Deleter> descriptor_;
};

}  // namespace cairn::cuda
