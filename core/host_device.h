#pragma once

/// CAIRN_HD marks a function that both the host compiler and nvcc compile. CAIRN_UNROLL before a loop asks the device
/// compiler to unroll the loop completely; CAIRN_UNROLL_BY(n) asks for n copies of the loop's body. CAIRN_DEVICE_PASS
/// is defined while nvcc compiles device code. No other header reads __CUDACC__ or __CUDA_ARCH__.
#ifdef __CUDACC__
#define CAIRN_HD __host__ __device__
#else
#define CAIRN_HD
#endif

#ifdef __CUDA_ARCH__
#define CAIRN_DEVICE_PASS
#define CAIRN_UNROLL _Pragma("unroll")
#define CAIRN_PRAGMA(text) _Pragma(#text)
#define CAIRN_UNROLL_BY(n) CAIRN_PRAGMA(unroll n)
#else
#define CAIRN_UNROLL
#define CAIRN_UNROLL_BY(n)
#endif
