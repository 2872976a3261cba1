#include "cli/hdf5_driver.h"

#include <unistd.h>

#include <algorithm>

#include "base/sandbox.h"

namespace tensordiff::hdf5 {
namespace {

constexpr std::size_t kBlock = 64 << 10;  // Read ahead: the library reads in small bits.

// A parent that is gone is no reason to go on.

void send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(kSandboxSocket, bytes.data(), bytes.size());
    if (written <= 0) end_process(1);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void receive_all(char* out, std::size_t count) {
  while (count > 0) {
    const ssize_t received = ::read(kSandboxSocket, out, count);
    if (received <= 0) end_process(1);
    out += received;
    count -= static_cast<std::size_t>(received);
  }
}

}  // namespace

void send(Message kind, const std::string& payload) {
  Payload head;
  head.number(static_cast<uint8_t>(kind)).number(static_cast<uint32_t>(payload.size()));
  send_all(head.bytes() + payload);
}

namespace {

struct RemoteFile {
  H5FD_t base;  // The library's own part comes first.
  haddr_t size;
  haddr_t end;
  haddr_t block_at;
  std::string* block;
};

uint64_t remote_size = 0;
uint64_t recorded_end = 0;

// A read of a chunk that is only to show where it lies: the bytes are not fetched.
struct SeenRead {
  bool wanted = false;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
};
SeenRead seen;

H5FD_t* remote_open(const char*, unsigned, hid_t, haddr_t) {
  return reinterpret_cast<H5FD_t*>(
      new RemoteFile{{}, remote_size, 0, HADDR_UNDEF, new std::string});
}
herr_t remote_close(H5FD_t* file) {
  auto* remote = reinterpret_cast<RemoteFile*>(file);
  delete remote->block;
  delete remote;
  return 0;
}
herr_t remote_query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = 0;
  return 0;
}
haddr_t remote_eoa(const H5FD_t* file, H5FD_mem_t) {
  return reinterpret_cast<const RemoteFile*>(file)->end;
}
herr_t remote_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  reinterpret_cast<RemoteFile*>(file)->end = recorded_end = end;
  return 0;
}
haddr_t remote_eof(const H5FD_t* file, H5FD_mem_t) {
  return reinterpret_cast<const RemoteFile*>(file)->size;
}

void fetch(uint64_t at, char* out, std::size_t count) {
  while (count > 0) {
    const auto now = static_cast<uint32_t>(std::min<std::size_t>(count, kReadBytesMax));
    send(Message::read, Payload().number(at).number(now).bytes());
    receive_all(out, now);
    at += now;
    out += now;
    count -= now;
  }
}

herr_t remote_read(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t at, std::size_t count, void* out) {
  auto* remote = reinterpret_cast<RemoteFile*>(file);
  if (at > remote->size || count > remote->size - at) return -1;
  if (seen.wanted && kind == H5FD_MEM_DRAW && count == seen.bytes) {
    seen.address = at;
    return 0;
  }
  if (count >= kBlock) return fetch(at, static_cast<char*>(out), count), 0;
  const bool held = remote->block_at != HADDR_UNDEF && at >= remote->block_at &&
                    at + count <= remote->block_at + remote->block->size();
  if (!held) {
    remote->block->resize(std::min<haddr_t>(kBlock, remote->size - at));
    remote->block_at = at;
    fetch(at, remote->block->data(), remote->block->size());
  }
  std::memcpy(out, remote->block->data() + (at - remote->block_at), count);
  return 0;
}
herr_t remote_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

H5FD_class_t remote_driver() {
  H5FD_class_t driver = {};
  driver.name = "remote";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = remote_open;
  driver.close = remote_close;
  driver.query = remote_query;
  driver.get_eoa = remote_eoa;
  driver.set_eoa = remote_set_eoa;
  driver.get_eof = remote_eof;
  driver.read = remote_read;
  driver.write = remote_write;
  constexpr H5FD_mem_t kMap[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kMap), std::end(kMap), driver.fl_map);
  return driver;
}

}  // namespace

hid_t open_remote() {
  receive_all(reinterpret_cast<char*>(&remote_size), sizeof(remote_size));
  static const H5FD_class_t driver = remote_driver();
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_driver(access, H5FDregister(&driver), nullptr);
  return H5Fopen("file", H5F_ACC_RDONLY, access);
}

uint64_t remote_bytes() { return remote_size; }

uint64_t remote_end() { return recorded_end; }

void watch_for(uint64_t bytes) { seen = {true, HADDR_UNDEF, bytes}; }

haddr_t watched() {
  seen.wanted = false;
  return seen.address;
}

void end_process(int status) { _exit(status); }

}  // namespace tensordiff::hdf5
