// The machine that nvFuser's kernels run on here: one host thread that is every CUDA thread in turn.

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <complex>
#include <type_traits>

#define __device__
#define __global__ static
#define __forceinline__ inline
#define NVFUSER_DEFINE_MAGIC_ZERO const int nvfuser_zero = 0;
#define NVFUSER_UPDATE_MAGIC_ZERO
#define POS_INFINITY INFINITY
#define NEG_INFINITY (-INFINITY)

struct Dim3 { int x, y, z; };
static Dim3 gridDim, blockDim, blockIdx, threadIdx;

extern "C" void set_launch(const int* n) { gridDim = {n[0], n[1], n[2]}; blockDim = {n[3], n[4], n[5]}; }

template <typename F> static void for_each_thread(F run) {
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
  for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
  for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
  for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
  for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) run();
}

static double erfinv(double y) {  // Newton's method from a start on the right side
  if (!(std::fabs(y) < 1)) return std::fabs(y) == 1 ? y * INFINITY : NAN;
  double w = std::log(1 - y * y), a = 2 / (M_PI * 0.147) + w / 2;
  double x = std::copysign(std::sqrt(std::sqrt(a * a - w / 0.147) - a), y);
  for (int i = 0; i < 4; i++) x -= (std::erf(x) - y) * std::sqrt(M_PI) / 2 * std::exp(x * x);
  return x;
}
static float erfinvf(float y) { return erfinv((double)y); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
static float rsqrtf(float x) { return 1 / std::sqrt((double)x); }

template <typename T> static bool isfinite(std::complex<T> x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }
template <typename T> static bool isinf(std::complex<T> x) { return std::isinf(x.real()) || std::isinf(x.imag()); }
template <typename T> static bool isnan(std::complex<T> x) { return std::isnan(x.real()) || std::isnan(x.imag()); }

using nvfuser_index_t = int;
struct __half {
  _Float16 value;
  __half(float x = 0) : value(x) {}
  operator float() const { return value; }
  uint16_t raw() const { uint16_t bits; memcpy(&bits, &value, 2); return bits; }
};
struct __bfloat {
  uint16_t bits;
  __bfloat(float x = 0) {
    uint32_t b;
    memcpy(&b, &x, 4);
    bits = x != x ? 0x7fc0 : (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  }
  operator float() const { uint32_t b = (uint32_t)bits << 16; float x; memcpy(&x, &b, 4); return x; }
  uint16_t raw() const { return bits; }
};
template <typename T> static bool __to_bool(T x) { return x; }
template <typename T> static int __to_int32(T x) { return x; }
template <typename T> static int64_t __to_int64(T x) { return x; }
template <typename T> static int __to_index(T x) { return x; }
template <typename T> static float __to_float(T x) { return x; }
template <typename T> static double __to_double(T x) { return x; }
template <typename T> static T either_bits(T x, T y) {
  uint16_t a, b;
  memcpy(&a, &x, 2); memcpy(&b, &y, 2); a |= b; memcpy(&x, &a, 2);
  return x;
}
static __half operator|(__half x, __half y) { return either_bits(x, y); }
static __bfloat operator|(__bfloat x, __bfloat y) { return either_bits(x, y); }
static float __half2float(__half x) { return x; }
static __half __float2half(float x) { return x; }
static float __bfloat2float(__bfloat x) { return x; }
static __bfloat __float2bfloat(float x) { return x; }

static float __half2double(__half x) { return x; }
static __bfloat __half2bfloat(__half x) { return (float)x; }
static int64_t __half2int(__half x) { return (float)x; }
static int __half2int32(__half x) { return (float)x; }
static bool __half2bool(__half x) { return (float)x; }
static __half __bool2half(bool x) { return x; }
static __bfloat __bool2bfloat(bool x) { return x; }
static __half __double2half(double x) { return x; }
static double __bfloat2double(__bfloat x) { return x; }
static __half __bfloat2half(__bfloat x) { return (float)x; }
static int64_t __bfloat2int(__bfloat x) { return (float)x; }
static int __bfloat2int32(__bfloat x) { return (float)x; }
static bool __bfloat2bool(__bfloat x) { return (float)x; }
static __bfloat __double2bfloat(double x) { return x; }

template <typename T> static std::complex<float> __to_complex_float(T x) { return std::complex<float>(x); }
template <typename T> static std::complex<double> __to_complex_double(T x) { return std::complex<double>(x); }
static std::complex<float> __half2complex_float(__half x) { return (float)x; }
static std::complex<double> __half2complex_double(__half x) { return (float)x; }
static std::complex<float> __bfloat2complex_float(__bfloat x) { return (float)x; }
static std::complex<double> __bfloat2complex_double(__bfloat x) { return (float)x; }

namespace nvf {
using int64_t = long long;  // as CUDA's
template <typename T> static std::complex<T> sigmoid(std::complex<T> x) { return T(1) / (T(1) + std::exp(-x)); }
template <typename T> static std::complex<T> rsqrt(std::complex<T> x) { return T(1) / std::sqrt(x); }
template <typename T> static std::complex<T> reciprocal(std::complex<T> x) { return T(1) / x; }
using std::log2;
template <typename T> static std::complex<T> log2(std::complex<T> x) { return std::log(x) / std::log(T(2)); }
// HELPERS

template <typename T, int N, int Alignment> struct Array {
  T values[N];
  T& operator[](int i) { return values[i]; }
  void set(T x) { for (T& v : values) v = x; }
};

template <typename T, int N, int M> struct Tensor {
  T* data;
  Array<int, N ? N : 1, 1> logical_size, alloc_stride;
  Tensor(void* p, const int* shape, const int* strides) : data((T*)p) {
    for (int i = 0; i < N; i++) logical_size[i] = shape[i];
    for (int i = 0; i < M; i++) alloc_stride[i] = strides[i];
  }
  T& operator[](int i) { return data[i]; }
};

enum class CacheOp { Unspecified, AllLevels, Streaming, Global };
template <typename T, int N, bool... Volatile> void copy(T* to, T* from) { for (int i = 0; i < N; i++) to[i] = from[i]; }
template <typename T, int N, bool V, CacheOp C> void loadGlobalToLocal(T* to, T* from) { copy<T, N>(to, from); }
template <typename T, int N, bool V> void loadLocalToGlobal(T* to, T* from) { copy<T, N>(to, from); }
template <typename T, int N> void loadGeneric(T* to, T* from) { copy<T, N>(to, from); }

// Reductions over a block of one thread.
struct DefaultBlockDim {};
template <bool...> struct Flags {};
// `reads` is false for threads that have nothing to add, whose `out` may be no memory of the tensor's.
template <bool... B, typename T, typename F, typename... Rest>
void blockReduce(T& out, const T& in, F op, T*, bool reads, Rest...) { if (reads) op(out, in); }
template <bool... B, typename T, typename N, typename... Rest>
void blockWelford(T& mean, T& squares, N& n, const T& in_mean, const T& in_squares, const N& in_n, Rest...) {
  mean = in_mean; squares = in_squares; n = in_n;
}
namespace warp {
template <bool... B, typename T, typename F, typename... Rest> void warpReduceTIDX(T& out, const T& in, F op, Rest...) { op(out, in); }
}
}  // namespace nvf

