/* The annotations that NVIDIA's headers put on declarations, all empty for a C compiler that only needs the types.
 * The runtime's wheel ships the headers without this file, which belongs to the CUDA compiler. */
#pragma once
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __cudart_builtin__
#define __device__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __host__
#define __forceinline__ __inline__
#define CUDARTAPI
#define CUDARTAPI_CDECL
