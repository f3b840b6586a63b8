// SPDX-License-Identifier: Apache-2.0
// Capture files read: classic ones by libpcap, pcapng by pcapng_source.
#include <pcap/pcap.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/wire/icrc.h"
#include "tlm/capture.h"
#include "tlm/link_header.h"
#include "tlm/pcapng_source.h"

namespace rnic::tlm {

namespace {

/// Upper half of a file's link type (pcap savefile format): there is an FCS, of two times 16 bits.
constexpr std::uint32_t link_type_with_fcs = 0x2400'0000, link_type_fcs_mask = 0xf400'0000;
constexpr std::uint32_t fcs_bytes = 4;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

/// A file or stream, unpacked on the way if it is gzip's, whose first bytes have been looked at.
struct unpacked {
  gzFile packed = nullptr;
  std::array<char, 4> first{};
  std::size_t have = 0, given = 0;
};

ssize_t read_unpacked(void* cookie, char* to, std::size_t bytes) {
  auto& u = *static_cast<unpacked*>(cookie);
  if (u.given < u.have) {
    const std::size_t n = std::min(bytes, u.have - u.given);
    std::copy_n(u.first.begin() + static_cast<std::ptrdiff_t>(u.given), n, to);
    u.given += n;
    return static_cast<ssize_t>(n);
  }
  const int got = gzread(u.packed, to, static_cast<unsigned>(std::min<std::size_t>(bytes, 1u << 30)));
  if (got < 0) errno = EIO;
  return got;
}

int close_unpacked(void* cookie) {
  auto* u = static_cast<unpacked*>(cookie);
  const int closed = gzclose(u->packed);
  delete u;
  return closed == Z_OK ? 0 : EOF;
}

gzFile open_packed(const std::string& path) {
  if (path != "-") return gzopen(path.c_str(), "rbe");
  const int fd = ::dup(STDIN_FILENO);
  gzFile packed = fd < 0 ? nullptr : gzdopen(fd, "rb");
  if (packed == nullptr && fd >= 0) ::close(fd);
  return packed;
}

/// `magic`: its first four bytes, little-endian.
pcapng_source::file_ptr open_unpacked(const std::string& path, const std::string& name, std::uint32_t& magic) {
  errno = 0;
  auto* u = new unpacked;
  u->packed = open_packed(path);
  if (u->packed == nullptr) {
    delete u;
    throw capture_error(name + ": " + std::strerror(errno != 0 ? errno : ENOMEM));
  }
  std::FILE* file = ::fopencookie(u, "rb", cookie_io_functions_t{read_unpacked, nullptr, nullptr, close_unpacked});
  if (file == nullptr) {
    close_unpacked(u);
    throw capture_error(name + ": out of memory");
  }
  pcapng_source::file_ptr owner(file);
  const int got = gzread(u->packed, u->first.data(), static_cast<unsigned>(u->first.size()));
  int code = Z_OK;
  const char* why = gzerror(u->packed, &code);
  if (got < 0) throw capture_error(name + ": " + (code == Z_ERRNO ? std::strerror(errno) : why));
  if (got == 0) throw capture_error(name + ": is empty");
  u->have = static_cast<std::size_t>(got);
  magic = 0;
  for (std::size_t i = 0; i < u->have; ++i) magic |= std::uint32_t{static_cast<unsigned char>(u->first[i])} << (8 * i);
  return owner;
}

/// A classic file.
class pcap_source final : public capture_source_if {
 public:
  pcap_source(pcapng_source::file_ptr file, const std::string& name) {
    char why[PCAP_ERRBUF_SIZE] = "";
    handle_ = pcap_fopen_offline_with_tstamp_precision(file.get(), PCAP_TSTAMP_PRECISION_NANO, why);
    if (handle_ == nullptr) throw capture_error(name + ": " + why);
    static_cast<void>(file.release());  // belongs to libpcap now
    fcs_ = (static_cast<std::uint32_t>(pcap_datalink_ext(handle_)) & link_type_fcs_mask) == link_type_with_fcs;
  }
  ~pcap_source() override { pcap_close(handle_); }
  pcap_source(const pcap_source&) = delete;
  pcap_source& operator=(const pcap_source&) = delete;

  int link_type() const { return pcap_datalink(handle_); }

  result next(stored_packet& out) override {
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    const int got = pcap_next_ex(handle_, &header, &bytes);
    if (got != 1) return got == PCAP_ERROR_BREAK ? result::end : result::damaged;
    out.data = bytes;
    out.length = header->caplen;
    out.wire_length = std::max(header->caplen, header->len);
    out.time_ns =
        static_cast<std::uint64_t>(header->ts.tv_sec) * ns_per_s + static_cast<std::uint64_t>(header->ts.tv_usec);
    out.link_type = link_type();
    out.fcs_bytes = fcs_ ? fcs_bytes : 0;
    return result::packet;
  }
  std::string reason() const override { return pcap_geterr(handle_); }

 private:
  pcap* handle_ = nullptr;
  bool fcs_ = false;
};

/// Of Ethernet frames; an FCS of another length than Ethernet's is only taken off.
void strip_fcs(captured_frame& f, std::uint32_t bytes) {
  f.wire_length -= bytes;
  if (f.length <= f.wire_length) return;  // the capture cut it off
  if (bytes == fcs_bytes && f.length == f.wire_length + fcs_bytes) {
    std::uint32_t fcs = 0;
    for (unsigned i = 0; i < fcs_bytes; ++i) fcs |= std::uint32_t{f.data[f.wire_length + i]} << (8 * i);
    f.wrong_fcs = fcs != wire::ethernet_fcs(f.data, f.wire_length);
  }
  f.length = f.wire_length;
}

}  // namespace

capture_reader::capture_reader(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  std::uint32_t magic = 0;
  pcapng_source::file_ptr file = open_unpacked(path, name_, magic);
  if (magic == pcapng_source::section_block) {
    source_ = std::make_unique<pcapng_source>(std::move(file));
    return;
  }
  auto classic = std::make_unique<pcap_source>(std::move(file), name_);
  if (!is_read(classic->link_type()))
    throw capture_error(name_ + ": link type is " + link_type_name(classic->link_type()) +
                        ", expected Ethernet, Linux cooked or raw IP");
  source_ = std::move(classic);
}

capture_reader::~capture_reader() = default;

capture_reader::result capture_reader::next(captured_frame& out) {
  if (!reason_.empty()) return result::damaged;
  stored_packet p;
  switch (source_->next(p)) {
    case capture_source_if::result::end:
      return result::end;
    case capture_source_if::result::damaged:
      reason_ = name_ + ": after frame " + std::to_string(frames_) + ": " + source_->reason();
      return result::damaged;
    default:
      break;
  }
  ++frames_;
  out = captured_frame{};
  out.time_ns = p.time_ns;
  out.interface = p.interface;
  out.link_type = p.link_type;
  if (!is_read(p.link_type)) {
    out.link = frame_link::other;
    return result::frame;
  }
  to_ethernet(p, room_, out);
  if (out.link == frame_link::ethernet && p.fcs_bytes != 0 && out.wire_length >= p.fcs_bytes)
    strip_fcs(out, p.fcs_bytes);
  return result::frame;
}

}  // namespace rnic::tlm
