/* A CUDA device that is not there: the driver and the runtime of a virtual device.
 *
 * Preloaded as libcuda.so.1, it answers what PyTorch's allocator, nvFuser's schedulers and its kernel compilation ask
 * of CUDA, for the chip that the environment describes. Device memory is host memory. Kernels loaded through the driver
 * are recorded when launched and compute nothing; kernels compiled into a library are refused, because whoever launches
 * them expects their results. Every other call that CUDA's headers declare is refused by name (see launcher.py). */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DEVICES 16
#define UNUSED __attribute__((unused))

static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the chip: "key=value key=value ..." in THUNDER_VIRTUAL_CUDA_FIGURES ---- */

static long long figure(const char *key) {
  const char *at = getenv("THUNDER_VIRTUAL_CUDA_FIGURES");
  size_t length = strlen(key);
  for (; at; at = strchr(at, ' ')) {
    at += *at == ' ';
    if (!strncmp(at, key, length) && at[length] == '=') return atoll(at + length + 1);
  }
  fprintf(stderr, "virtual CUDA device: figure '%s' is not in THUNDER_VIRTUAL_CUDA_FIGURES; "
                  "start with `python -m thunder.virtual_cuda`\n", key);
  abort();
}

static const char *chip_name(void) { return getenv("THUNDER_VIRTUAL_CUDA_NAME"); }
static int devices(void) { return (int)figure("devices"); }

/* ---- refusing ---- */

cudaError_t thunder_virtual_cuda_refuse(const char *name) {
  fprintf(stderr, "virtual CUDA device: %s is not supported\n", name);
  return last_error = cudaErrorNotSupported;
}

CUresult thunder_virtual_cuda_refuse_driver(const char *name) {
  fprintf(stderr, "virtual CUDA device: %s is not supported\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

static cudaError_t fail(cudaError_t error) { return last_error = error; }

cudaError_t cudaGetLastError(void) { cudaError_t e = last_error; last_error = cudaSuccess; return e; }
cudaError_t cudaPeekAtLastError(void) { return last_error; }

static const char *explain(int error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorNotSupported: return "operation not supported on the virtual CUDA device";
    default: return "unknown error";
  }
}

static const char *name_of(int error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}

const char *cudaGetErrorString(cudaError_t error) { return explain(error); }
const char *cudaGetErrorName(cudaError_t error) { return name_of(error); }
CUresult cuGetErrorString(CUresult error, const char **text) { *text = explain(error); return 0; }
CUresult cuGetErrorName(CUresult error, const char **text) { *text = name_of(error); return 0; }

/* ---- device ---- */

cudaError_t cudaGetDeviceCount(int *count) { *count = devices(); return 0; }
cudaError_t cudaGetDevice(int *device) { *device = current_device; return 0; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return fail(cudaErrorInvalidDevice);
  current_device = device;
  return 0;
}
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDART_VERSION; return 0; }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return 0; }
cudaError_t cudaDeviceSynchronize(void) { return 0; }
cudaError_t cudaProfilerStart(void) { return 0; }
cudaError_t cudaProfilerStop(void) { return 0; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return 0; }
cudaError_t cudaDeviceEnablePeerAccess(int peer UNUSED, unsigned flags UNUSED) { return 0; }
cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
  snprintf(text, length, "0000:%02x:00.0", device + 1);
  return 0;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  switch ((int)attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = figure("threads_per_block"); break;
    case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = figure("shared_memory_per_block"); break;
    case cudaDevAttrTotalConstantMemory: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = figure("warp_size"); break;
    case cudaDevAttrMaxRegistersPerBlock: *value = figure("registers_per_block"); break;
    case cudaDevAttrClockRate: *value = figure("clock"); break;
    case cudaDevAttrTextureAlignment: *value = 512; break;
    case cudaDevAttrMultiProcessorCount: *value = figure("multiprocessors"); break;
    case cudaDevAttrIntegrated: case cudaDevAttrEccEnabled: case cudaDevAttrComputeMode: *value = 0; break;
    case cudaDevAttrPciBusId: *value = device + 1; break;
    case cudaDevAttrPciDeviceId: case cudaDevAttrPciDomainId: *value = 0; break;
    case cudaDevAttrMemoryClockRate: *value = figure("memory_clock"); break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = figure("memory_bus_width"); break;
    case cudaDevAttrL2CacheSize: *value = figure("l2_cache"); break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = figure("threads_per_multiprocessor"); break;
    case cudaDevAttrUnifiedAddressing: case cudaDevAttrConcurrentKernels: *value = 1; break;
    case cudaDevAttrComputeCapabilityMajor: *value = figure("major"); break;
    case cudaDevAttrComputeCapabilityMinor: *value = figure("minor"); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = figure("shared_memory_per_multiprocessor"); break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = figure("registers_per_multiprocessor"); break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = figure("shared_memory_per_block_optin"); break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = figure("blocks_per_multiprocessor"); break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = figure("reserved_shared_memory_per_block"); break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case cudaDevAttrMemoryPoolsSupported: case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrManagedMemory: case cudaDevAttrPageableMemoryAccess: *value = 0; break;
    default: {
      char name[64];
      snprintf(name, sizeof name, "device attribute %d", attribute);
      return thunder_virtual_cuda_refuse(name);
    }
  }
  return 0;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%s (virtual)", chip_name());
  snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "thunder virt %d", device);
  p->totalGlobalMem = figure("memory");
  p->sharedMemPerBlock = figure("shared_memory_per_block");
  p->regsPerBlock = figure("registers_per_block");
  p->warpSize = figure("warp_size");
  p->maxThreadsPerBlock = figure("threads_per_block");
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = figure("major");
  p->minor = figure("minor");
  p->textureAlignment = 512;
  p->multiProcessorCount = figure("multiprocessors");
  p->concurrentKernels = p->unifiedAddressing = p->cooperativeLaunch = 1;
  p->pciBusID = device + 1;
#if CUDART_VERSION < 13000
  p->clockRate = figure("clock");
  p->memoryClockRate = figure("memory_clock");
#endif
  p->memoryBusWidth = figure("memory_bus_width");
  p->l2CacheSize = figure("l2_cache");
  p->maxThreadsPerMultiProcessor = figure("threads_per_multiprocessor");
  p->sharedMemPerMultiprocessor = figure("shared_memory_per_multiprocessor");
  p->regsPerMultiprocessor = figure("registers_per_multiprocessor");
  p->sharedMemPerBlockOptin = figure("shared_memory_per_block_optin");
  p->maxBlocksPerMultiProcessor = figure("blocks_per_multiprocessor");
  p->reservedSharedMemPerBlock = figure("reserved_shared_memory_per_block");
  return 0;
}

struct CUctx_st { int device; };
static struct CUctx_st contexts[MAX_DEVICES];
static CUcontext context(int device) { contexts[device].device = device; return &contexts[device]; }

CUresult cuInit(unsigned flags UNUSED) { return 0; }
CUresult cuDriverGetVersion(int *version) { *version = CUDART_VERSION; return 0; }
CUresult cuDeviceGetCount(int *count) { *count = devices(); return 0; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= devices()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return 0;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device UNUSED) {
  snprintf(name, length, "%s (virtual)", chip_name());
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  return (CUresult)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device UNUSED) { *bytes = figure("memory"); return 0; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device UNUSED, unsigned *flags, int *active) {
  *flags = 0;
  *active = 1;
  return 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device) { *ctx = context(device); return 0; }
CUresult cuCtxGetCurrent(CUcontext *ctx) { *ctx = context(current_device); return 0; }
CUresult cuCtxSetCurrent(CUcontext ctx) { if (ctx) current_device = ctx->device; return 0; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = current_device; return 0; }

/* ---- memory is host memory; a list knows what is device memory and what is pinned ---- */

struct allocation { char *start; size_t size; enum cudaMemoryType type; int device; struct allocation *next; };
static struct allocation *allocations;
static size_t used[MAX_DEVICES];

/* Call with the lock held. */
static struct allocation **find(const void *pointer) {
  struct allocation **at = &allocations;
  while (*at && !((char *)pointer >= (*at)->start && (char *)pointer < (*at)->start + (*at)->size)) at = &(*at)->next;
  return at;
}

static cudaError_t allocate(void **pointer, size_t size, enum cudaMemoryType type) {
  bool on_device = type == cudaMemoryTypeDevice;
  *pointer = NULL;
  if (!size) return 0;
  pthread_mutex_lock(&lock);
  bool fits = !on_device || used[current_device] + size <= (size_t)figure("memory");
  if (fits && on_device) used[current_device] += size;
  pthread_mutex_unlock(&lock);
  struct allocation *a = fits ? malloc(sizeof *a) : NULL;
  if (!a || !(*pointer = aligned_alloc(512, (size + 511) / 512 * 512))) {
    if (fits && on_device) __atomic_sub_fetch(&used[current_device], size, __ATOMIC_SEQ_CST);
    free(a);
    return fail(cudaErrorMemoryAllocation);
  }
  *a = (struct allocation){*pointer, size, type, current_device, NULL};
  pthread_mutex_lock(&lock);
  a->next = allocations;
  allocations = a;
  pthread_mutex_unlock(&lock);
  return 0;
}

static cudaError_t release(void *pointer) {
  if (!pointer) return 0;
  pthread_mutex_lock(&lock);
  struct allocation **at = find(pointer), *a = *at;
  if (a) *at = a->next;
  if (a && a->type == cudaMemoryTypeDevice) used[a->device] -= a->size;
  pthread_mutex_unlock(&lock);
  if (!a) return fail(cudaErrorInvalidValue);
  free(a->start);
  free(a);
  return 0;
}

cudaError_t cudaMalloc(void **pointer, size_t size) { return allocate(pointer, size, cudaMemoryTypeDevice); }
cudaError_t cudaFree(void *pointer) { return release(pointer); }
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags UNUSED) {
  return allocate(pointer, size, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void *pointer) { return release(pointer); }
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *total = figure("memory");
  pthread_mutex_lock(&lock);
  *available = *total - used[current_device];
  pthread_mutex_unlock(&lock);
  return 0;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind UNUSED) {
  memmove(to, from, size);
  return 0;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t s UNUSED) {
  return cudaMemcpy(to, from, size, kind);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device UNUSED, const void *from, int from_device UNUSED, size_t size,
                                cudaStream_t s UNUSED) {
  return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}
cudaError_t cudaMemset(void *to, int value, size_t size) { memset(to, value, size); return 0; }
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t s UNUSED) {
  return cudaMemset(to, value, size);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
  memset(attributes, 0, sizeof *attributes);
  pthread_mutex_lock(&lock);
  struct allocation *a = *find(pointer);
  attributes->type = a ? a->type : cudaMemoryTypeUnregistered;
  attributes->device = a ? a->device : 0;
  attributes->devicePointer = a ? (void *)pointer : NULL;
  attributes->hostPointer = a && a->type == cudaMemoryTypeHost ? (void *)pointer : NULL;
  pthread_mutex_unlock(&lock);
  return 0;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  struct cudaPointerAttributes found;
  cudaPointerGetAttributes(&found, (void *)pointer);
  if (found.type == cudaMemoryTypeUnregistered) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = context(found.device); return 0;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data = found.type; return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = pointer; return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = found.device; return 0;
    default: return thunder_virtual_cuda_refuse_driver("cuPointerGetAttribute for this attribute");
  }
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
  pthread_mutex_lock(&lock);
  struct allocation *a = *find((void *)pointer);
  if (a && base) *base = (CUdeviceptr)a->start;
  if (a && size) *size = a->size;
  pthread_mutex_unlock(&lock);
  return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- streams and events: all work is done when it is asked for ---- */

struct CUstream_st { int priority; };
struct CUevent_st { struct timespec recorded; };

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags UNUSED, int priority) {
  *stream = malloc(sizeof **stream);
  (*stream)->priority = priority;
  return 0;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { free(stream); return 0; }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) { *priority = s ? s->priority : 0; return 0; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream UNUSED) { return 0; }
cudaError_t cudaStreamQuery(cudaStream_t stream UNUSED) { return 0; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream UNUSED, cudaEvent_t event UNUSED, unsigned flags UNUSED) { return 0; }
cudaError_t cudaStreamIsCapturing(cudaStream_t stream UNUSED, enum cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return 0;
}
#if CUDART_VERSION < 13000
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream UNUSED, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id UNUSED, cudaGraph_t *graph UNUSED,
                                        const cudaGraphNode_t **dependencies UNUSED, size_t *count UNUSED) {
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream UNUSED, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id UNUSED, cudaGraph_t *graph UNUSED,
                                     const cudaGraphNode_t **dependencies UNUSED,
                                     const cudaGraphEdgeData **edges UNUSED, size_t *count UNUSED) {
#endif
  *status = cudaStreamCaptureStatusNone;
  return 0;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode UNUSED) { return 0; }
cudaError_t cudaLaunchHostFunc(cudaStream_t stream UNUSED, cudaHostFn_t function, void *data) { function(data); return 0; }
CUresult cuStreamSynchronize(CUstream stream UNUSED) { return 0; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags UNUSED) {
  *event = calloc(1, sizeof **event);
  return 0;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { free(event); return 0; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream UNUSED) {
  clock_gettime(CLOCK_MONOTONIC, &event->recorded);
  return 0;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags UNUSED) { return cudaEventRecord(e, s); }
cudaError_t cudaEventQuery(cudaEvent_t event UNUSED) { return 0; }
cudaError_t cudaEventSynchronize(cudaEvent_t event UNUSED) { return 0; }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = (end->recorded.tv_sec - start->recorded.tv_sec) * 1e3f
                + (end->recorded.tv_nsec - start->recorded.tv_nsec) * 1e-6f;
  return 0;
}

/* ---- kernels compiled into libraries: known by name, refused when launched ---- */

struct compiled { const void *host; const char *name; };
static struct compiled *compiled;
static size_t compiled_count;

void **__cudaRegisterFatBinary(void *image UNUSED) { static void *handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void **handle UNUSED) {}
void __cudaUnregisterFatBinary(void **handle UNUSED) {}
char __cudaInitModule(void **handle UNUSED) { return 1; }
void __cudaRegisterVar(void **handle UNUSED, ...) {}
void __cudaRegisterFunction(void **handle UNUSED, const void *host, char *stub UNUSED, const char *name, ...) {
  pthread_mutex_lock(&lock);
  if (!(compiled_count & (compiled_count + 1)))
    compiled = realloc(compiled, (2 * compiled_count + 2) * sizeof *compiled);
  compiled[compiled_count++] = (struct compiled){host, name};
  pthread_mutex_unlock(&lock);
}
unsigned __cudaPushCallConfiguration(dim3 grid UNUSED, dim3 block UNUSED, size_t shared UNUSED, void *stream UNUSED) {
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = *block = (dim3){1, 1, 1};
  *shared = 0;
  *(void **)stream = NULL;
  return 0;
}

static cudaError_t refuse_compiled(const void *host) {
  char text[512];
  const char *name = "(unknown)";
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < compiled_count; i++) if (compiled[i].host == host) name = compiled[i].name;
  pthread_mutex_unlock(&lock);
  snprintf(text, sizeof text, "launching the compiled kernel %s", name);
  return thunder_virtual_cuda_refuse(text);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid UNUSED, dim3 block UNUSED, void **arguments UNUSED,
                             size_t shared UNUSED, cudaStream_t stream UNUSED) { return refuse_compiled(host); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config UNUSED, const void *host, void **arguments UNUSED) {
  return refuse_compiled(host);
}
cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid UNUSED, dim3 block UNUSED, void **arguments UNUSED,
                                        size_t shared UNUSED, cudaStream_t stream UNUSED) {
  return refuse_compiled(host);
}

/* ---- kernels loaded through the driver: resources are read from the cubin; unknown (-1) for PTX ---- */

struct CUmod_st { const char *cubin; };  /* a copy of the ELF image, or NULL */
struct CUfunc_st { char name[256]; int registers, shared, local, dynamic_shared_limit; };

static const Elf64_Shdr *section(const char *elf, int index) {
  return (const Elf64_Shdr *)(elf + ((const Elf64_Ehdr *)elf)->e_shoff) + index;
}

/* The section named prefix + kernel, or NULL. */
static const Elf64_Shdr *find_section(const char *elf, const char *prefix, const char *kernel) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf;
  const char *names = elf + section(elf, header->e_shstrndx)->sh_offset;
  size_t length = strlen(prefix);
  for (int i = 0; i < header->e_shnum; i++) {
    const char *name = names + section(elf, i)->sh_name;
    if (!strncmp(name, prefix, length) && !strcmp(name + length, kernel)) return section(elf, i);
  }
  return NULL;
}

/* Whether symbol number `index` of the image is the kernel. */
static bool is_symbol(const char *elf, unsigned index, const char *kernel) {
  const Elf64_Shdr *table = find_section(elf, ".symtab", "");
  if (!table || index >= table->sh_size / sizeof(Elf64_Sym)) return false;
  const Elf64_Sym *symbol = (const Elf64_Sym *)(elf + table->sh_offset) + index;
  return !strcmp(elf + section(elf, table->sh_link)->sh_offset + symbol->st_name, kernel);
}

/* A figure of the kernel in .nv.info, whose records are: format, attribute, size, then (symbol, value). */
static int kernel_info(const char *elf, const char *kernel, unsigned char attribute) {
  const Elf64_Shdr *info = find_section(elf, ".nv.info", "");
  const char *at = info ? elf + info->sh_offset : NULL, *end = info ? at + info->sh_size : NULL;
  while (at && at + 4 <= end) {
    bool sized = at[0] == 4;
    unsigned short size = *(const unsigned short *)(at + 2);
    const unsigned *pair = (const unsigned *)(at + 4);
    if (sized && (unsigned char)at[1] == attribute && size == 8 && is_symbol(elf, pair[0], kernel)) return pair[1];
    at += 4 + (sized ? size : 0);
  }
  return -1;
}

enum { FRAME_SIZE = 0x11, REGISTER_COUNT = 0x2f };

/* Static shared memory. From sm_90 on the compiler places it behind the part that the system reserves. */
static int shared_memory(const char *elf, const char *kernel) {
  const Elf64_Shdr *shared = find_section(elf, ".nv.shared.", kernel);
  int reserved = find_section(elf, ".nv.shared.reserved.0", "") ? figure("reserved_shared_memory_per_block") : 0;
  return shared && (int)shared->sh_size > reserved ? (int)shared->sh_size - reserved : 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  const Elf64_Ehdr *header = image;
  *module = calloc(1, sizeof **module);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG)) return 0;
  size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  for (int i = 0; i < header->e_shnum; i++) {
    const Elf64_Shdr *s = section(image, i);
    if (s->sh_type != SHT_NOBITS && s->sh_offset + s->sh_size > size) size = s->sh_offset + s->sh_size;
  }
  (*module)->cubin = memcpy(malloc(size), image, size);
  return 0;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values) {
  for (unsigned i = 0; i < count; i++) {  /* the logs that a caller wants to read back are empty */
    if (options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) *(char *)values[i] = 0;
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) values[i] = 0;
  }
  return cuModuleLoadData(module, image);
}
CUresult cuModuleUnload(CUmodule module) { free((void *)module->cubin); free(module); return 0; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  const char *elf = module->cubin;
  if (elf && !find_section(elf, ".text.", name)) return CUDA_ERROR_NOT_FOUND;
  CUfunction f = *function = calloc(1, sizeof *f);  /* stays: handles may outlive their use by the caller */
  snprintf(f->name, sizeof f->name, "%s", name);
  f->registers = elf ? kernel_info(elf, name, REGISTER_COUNT) : -1;
  f->local = elf ? kernel_info(elf, name, FRAME_SIZE) : -1;
  f->shared = elf ? shared_memory(elf, name) : -1;
  f->dynamic_shared_limit = figure("shared_memory_per_block") - (f->shared > 0 ? f->shared : 0);
  return 0;
}

static CUresult known(int *value, int found, const char *what) {
  if (found < 0) return thunder_virtual_cuda_refuse_driver(what);
  *value = found;
  return 0;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: {
      int limit = figure("threads_per_block"), per_block = figure("registers_per_block");
      *value = f->registers > 0 && per_block / f->registers < limit ? per_block / f->registers / 32 * 32 : limit;
      return 0;
    }
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return known(value, f->shared, "the shared memory of a PTX kernel");
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return known(value, f->local, "the local memory of a PTX kernel");
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return known(value, f->registers, "the register count of a PTX kernel");
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f->dynamic_shared_limit; return 0;
    default: return thunder_virtual_cuda_refuse_driver("cuFuncGetAttribute for this attribute");
  }
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return 0;  /* the others are hints */
  if (value + (f->shared > 0 ? f->shared : 0) > figure("shared_memory_per_block_optin")) return CUDA_ERROR_INVALID_VALUE;
  f->dynamic_shared_limit = value;
  return 0;
}
CUresult cuFuncSetCacheConfig(CUfunction f UNUSED, CUfunc_cache config UNUSED) { return 0; }

/* ---- occupancy: what of registers, shared memory, threads and blocks runs out first on a multiprocessor ---- */

static int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }
static int smaller(int a, int b) { return a < b ? a : b; }

static int resident_blocks(int registers, int static_shared, int threads, size_t dynamic_shared) {
  int warps = (threads + 31) / 32;
  int blocks = smaller(figure("blocks_per_multiprocessor"), figure("threads_per_multiprocessor") / (warps * 32));
  /* Registers are given per warp in units of 256, warps are spread over four schedulers. */
  if (registers > 0) {
    int warps_per_scheduler = figure("registers_per_multiprocessor") / 4 / round_up(registers * 32, 256);
    blocks = smaller(blocks, 4 * warps_per_scheduler / warps);
  }
  int shared = round_up(static_shared + dynamic_shared + figure("reserved_shared_memory_per_block"), 128);
  return shared ? smaller(blocks, figure("shared_memory_per_multiprocessor") / shared) : blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared) {
  *blocks = resident_blocks(f->registers, f->shared > 0 ? f->shared : 0, threads, shared);
  return 0;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads, size_t shared,
                                                              unsigned flags UNUSED) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction f, int blocks, int threads UNUSED) {
  long long per_block = figure("shared_memory_per_multiprocessor") / blocks / 128 * 128
                      - figure("reserved_shared_memory_per_block");
  long long limit = figure("shared_memory_per_block_optin");
  long long free_bytes = (per_block < limit ? per_block : limit) - (f->shared > 0 ? f->shared : 0);
  *bytes = free_bytes > 0 ? free_bytes : 0;
  return 0;
}

/* ---- launches are recorded; the last ones can be read from Python ---- */

struct launch {
  char kernel[256];
  unsigned grid[3], block[3], dynamic_shared;
  int registers, static_shared, local, device;
};
#define KEPT_LAUNCHES 1024
static struct launch launches[KEPT_LAUNCHES];
static unsigned long long launch_count;

static CUresult record(CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned dynamic_shared) {
  unsigned long long threads = (unsigned long long)block[0] * block[1] * block[2];
  if (!threads || threads > (unsigned long long)figure("threads_per_block")) return CUDA_ERROR_INVALID_VALUE;
  if ((int)dynamic_shared > f->dynamic_shared_limit) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  struct launch *l = &launches[launch_count++ % KEPT_LAUNCHES];
  memcpy(l->kernel, f->name, sizeof l->kernel);
  memcpy(l->grid, grid, sizeof l->grid);
  memcpy(l->block, block, sizeof l->block);
  l->dynamic_shared = dynamic_shared;
  l->registers = f->registers; l->static_shared = f->shared; l->local = f->local; l->device = current_device;
  pthread_mutex_unlock(&lock);
  return 0;
}

/* Copies up to `room` of the last launches, oldest first, and says how many. */
int thunder_virtual_cuda_launches(struct launch *out, int room) {
  pthread_mutex_lock(&lock);
  unsigned long long count = launch_count < KEPT_LAUNCHES ? launch_count : KEPT_LAUNCHES;
  if ((unsigned long long)room < count) count = room;
  for (unsigned long long i = 0; i < count; i++) out[i] = launches[(launch_count - count + i) % KEPT_LAUNCHES];
  pthread_mutex_unlock(&lock);
  return (int)count;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream UNUSED, void **arguments UNUSED, void **extra UNUSED) {
  return record(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream UNUSED, void **arguments UNUSED) {
  return record(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments UNUSED, void **extra UNUSED) {
  return record(f, (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ},
                (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes);
}

/* ---- finding driver functions by name, at their newest version ---- */

static cudaError_t entry_point(const char *symbol, void **function, enum cudaDriverEntryPointQueryResult *found) {
  const char *suffixes[] = {"_v3", "_v2", ""};
  char name[128];
  *function = NULL;
  for (int i = 0; i < 3 && !*function; i++) {
    snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
    *function = dlsym(RTLD_DEFAULT, name);
  }
  if (found) *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : thunder_virtual_cuda_refuse(symbol);
}
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags UNUSED,
                                    enum cudaDriverEntryPointQueryResult *found) {
  return entry_point(symbol, function, found);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version UNUSED,
                                             unsigned long long flags UNUSED,
                                             enum cudaDriverEntryPointQueryResult *found) {
  return entry_point(symbol, function, found);
}
