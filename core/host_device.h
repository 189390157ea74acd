#pragma once

/// CAIRN_HD marks a function that both the host compiler and nvcc build. No other header looks at __CUDACC__.
#ifdef __CUDACC__
#define CAIRN_HD __host__ __device__
#else
#define CAIRN_HD
#endif
