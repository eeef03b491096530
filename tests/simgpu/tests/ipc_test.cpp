// SPDX-License-Identifier: Apache-2.0
// Two processes: legacy IPC handles, events, and shareable handles (cuda.h, cuIpcGetMemHandle,
// cuMemExportToShareableHandle, cuMemGetHandleForAddressRange).
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

constexpr uint32_t kWords = 64;
constexpr size_t kBytes = 4 * kWords;

// A second process, forked before either has a driver, and a line to it.
class Partner {
 public:
  explicit Partner(const std::function<void(int)>& body) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      close(pair[0]);
      body(pair[1]);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    close(pair[1]);
    line_ = pair[0];
  }
  int line() const { return line_; }
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }

 private:
  pid_t process_ = 0;
  int line_ = -1;
};

template <class T>
void put(int line, const T& value) {
  EXPECT_EQ(write(line, &value, sizeof value), static_cast<ssize_t>(sizeof value));
}
template <class T>
T get(int line) {
  T value = {};
  EXPECT_EQ(read(line, &value, sizeof value), static_cast<ssize_t>(sizeof value));
  return value;
}

void put_descriptor(int line, int fd) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  EXPECT_EQ(sendmsg(line, &message, 0), 1);
}

int get_descriptor(int line) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  EXPECT_EQ(recvmsg(line, &message, 0), 1);
  int fd = -1;
  if (CMSG_FIRSTHDR(&message) != nullptr) {
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  }
  return fd;
}

TEST(Ipc, MemoryAndEventsOfAnotherProcess) {
  EXPECT_CLEAN(in_child({}, [] {
    Partner partner([](int line) {
      Gpu gpu;
      const auto handle = get<CUipcMemHandle>(line);
      const auto event_handle = get<CUipcEventHandle>(line);
      CUdeviceptr p = 0;
      EXPECT_EQ(cuIpcOpenMemHandle(&p, handle, 0), CUDA_ERROR_INVALID_VALUE);
      CU(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
      CUdeviceptr again = 0;
      CU(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
      EXPECT_EQ(again, p);
      CU(cuIpcCloseMemHandle(again));
      CUevent event = nullptr;
      CU(cuIpcOpenEventHandle(&event, event_handle));
      EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);  // the owner holds it back
      const CUstream stream = new_stream();
      CU(cuStreamWaitEvent(stream, event, 0));
      CU(gpu.launch_add(p, kWords, 1, stream));
      put(line, 1);
      CU(cuStreamSynchronize(stream));
      CU(cuEventQuery(event));
      EXPECT_EQ(gpu.read(p, 1)[0], 8U);
      CU(cuEventRecord(event, stream));  // the other way round
      CU(cuEventSynchronize(event));
      CU(cuIpcCloseMemHandle(p));
      EXPECT_EQ(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
      put(line, 2);
    });
    Gpu gpu;
    allocate(512);
    const CUdeviceptr p = allocate(kBytes);  // not at the beginning of its block
    CUipcMemHandle handle = {};
    CUipcMemHandle inside = {};
    CU(cuIpcGetMemHandle(&handle, p));
    CU(cuIpcGetMemHandle(&inside, p + 8));
    EXPECT_EQ(std::memcmp(&handle, &inside, sizeof handle), 0);  // the base either way
    CUdeviceptr own = 0;
    EXPECT_EQ(cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
    const CUevent plain = new_event();
    CUipcEventHandle event_handle = {};
    EXPECT_EQ(cuIpcGetEventHandle(&event_handle, plain), CUDA_ERROR_INVALID_HANDLE);
    const CUevent event = new_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    CU(cuIpcGetEventHandle(&event_handle, event));
    const CUstream stream = new_stream();
    Gate gate;
    gate.close(stream);
    CU(gpu.launch_store(p, kWords, 7, stream));
    CU(cuEventRecord(event, stream));
    put(partner.line(), handle);
    put(partner.line(), event_handle);
    EXPECT_EQ(get<int>(partner.line()), 1);
    gate.open();
    CU(cuStreamSynchronize(stream));
    EXPECT_EQ(get<int>(partner.line()), 2);
    CU(cuEventSynchronize(event));
    EXPECT_EQ(gpu.read(p, 1)[0], 8U);
    EXPECT_EQ(partner.wait(), 0);
  }));
}

TEST(Ipc, OnlyPlainMemoryHasALegacyHandle) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    CUipcMemHandle handle = {};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, new_extent(2 << 20).address), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr pooled = 0;
    CU(cuMemAllocAsync(&pooled, kBytes, nullptr));
    EXPECT_EQ(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr managed = 0;
    CU(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
    CU(cuCtxSynchronize());
  }));
}

CUmemAllocationProp shareable_properties() {
  CUmemAllocationProp properties = device_properties();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUdeviceptr map_handle(CUmemGenericAllocationHandle handle, size_t bytes) {
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAddressReserve(&p, bytes, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(p, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(give_access(p, bytes), CUDA_SUCCESS);
  return p;
}

TEST(Ipc, ShareableHandlesCrossByDescriptor) {
  constexpr size_t kExtent = 4 << 20;
  EXPECT_CLEAN(in_child({}, [] {
    Partner partner([](int line) {
      Gpu gpu;
      const int fd = get_descriptor(line);
      CUmemGenericAllocationHandle handle = 0;
      CU(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{fd}),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
      const CUdeviceptr p = map_handle(handle, kExtent);
      EXPECT_EQ(gpu.read(p, 1)[0], 3U);
      CU(gpu.launch_add(p, kWords, 4, nullptr));
      CU(cuCtxSynchronize());
      CU(cuMemUnmap(p, kExtent));
      CU(cuMemRelease(handle));
      put(line, 1);
    });
    Gpu gpu;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp plain = device_properties();
    CU(cuMemCreate(&handle, kExtent, &plain, 0));
    int fd = -1;
    EXPECT_EQ(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);  // not created for it
    const CUmemAllocationProp properties = shareable_properties();
    CU(cuMemCreate(&handle, kExtent, &properties, 0));
    CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    const CUdeviceptr p = map_handle(handle, kExtent);
    CU(gpu.launch_store(p, kWords, 3, nullptr));
    CU(cuCtxSynchronize());
    put_descriptor(partner.line(), fd);
    EXPECT_EQ(get<int>(partner.line()), 1);
    EXPECT_EQ(gpu.read(p, 1)[0], 7U);
    // In the same process it is the same memory again.
    CUmemGenericAllocationHandle twin = 0;
    CU(cuMemImportFromShareableHandle(&twin, reinterpret_cast<void*>(intptr_t{fd}),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    EXPECT_EQ(gpu.read(map_handle(twin, kExtent), 1)[0], 7U);
    const int nothing = open("/dev/null", O_RDONLY);
    EXPECT_EQ(cuMemImportFromShareableHandle(&twin, reinterpret_cast<void*>(intptr_t{nothing}),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(partner.wait(), 0);
  }));
}

TEST(Ipc, AddressRangesForNetworkCards) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    int fd = -1;
    const auto ask = [&](CUdeviceptr p, size_t bytes) {
      return cuMemGetHandleForAddressRange(&fd, p, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    };
    const CUdeviceptr p = allocate(4 << 20);
    CU(ask(p, 4 << 20));
    EXPECT_GE(fd, 0);
    EXPECT_EQ(ask(p, 8 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(ask(p + 8, 4096), CUDA_ERROR_INVALID_VALUE);
    // VMM memory must have been created for it.
    EXPECT_EQ(ask(new_extent(2 << 20).address, 2 << 20), CUDA_ERROR_INVALID_VALUE);
    CUmemAllocationProp properties = device_properties();
    properties.allocFlags.gpuDirectRDMACapable = 1;
    CUmemGenericAllocationHandle handle = 0;
    CU(cuMemCreate(&handle, 2 << 20, &properties, 0));
    CU(ask(map_handle(handle, 2 << 20), 2 << 20));
  }));
}

}  // namespace
}  // namespace simgpu::test
