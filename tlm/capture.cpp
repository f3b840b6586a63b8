// SPDX-License-Identifier: Apache-2.0
// Capture files written by libpcap.
#include "tlm/capture.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/wire/icrc.h"
#include "tlm/create_file.h"

namespace rnic::tlm {

namespace {

/// Upper half of a file's link type (pcap savefile format): there is an FCS, of two times 16 bits.
constexpr std::uint32_t link_type_with_fcs = 0x2400'0000;
constexpr long link_type_at = 20;

constexpr int snapshot_length = 262'144;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

/// libpcap reads the upper half of a link type and does not write it.
bool announce_fcs(std::FILE* file) {
  const std::uint32_t link_type = DLT_EN10MB | link_type_with_fcs;
  return std::fseek(file, link_type_at, SEEK_SET) == 0 && std::fwrite(&link_type, sizeof link_type, 1, file) == 1 &&
         std::fseek(file, 0, SEEK_END) == 0;
}

}  // namespace

std::FILE* create_file(const std::string& path, bool overwrite) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL), 0644);
  if (fd < 0 && errno == EEXIST) throw capture_error(path + ": exists already, not overwritten");
  if (fd < 0) throw capture_error(path + ": " + std::strerror(errno));
  std::FILE* file = ::fdopen(fd, "wb");
  if (file == nullptr) ::close(fd);
  return file;
}

capture_writer::capture_writer(const std::string& path, const config& cfg)
    : path_(path), config_(cfg), sorter_(cfg.reorder_ps) {
  handle_ = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, snapshot_length, PCAP_TSTAMP_PRECISION_NANO);
  if (handle_ == nullptr) throw capture_error(path_ + ": out of memory");
  std::FILE* file = nullptr;
  try {
    file = create_file(path_, cfg.overwrite);
  } catch (const capture_error&) {
    pcap_close(handle_);
    throw;
  }
  dumper_ = file == nullptr ? nullptr : pcap_dump_fopen(handle_, file);
  if (dumper_ == nullptr) {
    const std::string why = pcap_geterr(handle_);
    if (file != nullptr) std::fclose(file);
    pcap_close(handle_);
    throw capture_error(path_ + ": " + why);
  }
  if (cfg.fcs && !announce_fcs(pcap_dump_file(dumper_))) {
    pcap_dump_close(dumper_);
    pcap_close(handle_);
    throw capture_error(path_ + ": a capture with FCS needs a file, not a stream");
  }
}

capture_writer::~capture_writer() {
  try {
    close();
  } catch (const capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // a destructor must not throw, and silence would hide a lost capture
  }
}

void capture_writer::observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps) {
  if (dumper_ == nullptr) return;
  if (!config_.fcs && wire::ethernet_fcs(f.data(), f.length) != f.fcs) {
    ++wrong_fcs_;
    return;
  }
  sorter_.add(f, from, first_bit, config_.fcs, [this](const frame_sorter::record& r) { write(r); });
}

void capture_writer::write(const frame_sorter::record& r) {
  pcap_pkthdr header{};
  const std::uint64_t ns = clock_.of(r.at);
  header.ts.tv_sec = static_cast<time_t>(ns / ns_per_s);
  header.ts.tv_usec = static_cast<suseconds_t>(ns % ns_per_s);  // nanoseconds in a file of this precision
  header.caplen = header.len = static_cast<bpf_u_int32>(r.bytes.size());
  pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, r.bytes.data());
}

void capture_writer::close() {
  if (dumper_ == nullptr) return;
  sorter_.flush_before(~sim::time_ps{0}, [this](const frame_sorter::record& r) { write(r); });
  const bool flushed = pcap_dump_flush(dumper_) == 0;
  const bool ok = flushed && std::ferror(pcap_dump_file(dumper_)) == 0;
  const int why = errno;
  pcap_dump_close(dumper_);
  pcap_close(handle_);
  dumper_ = nullptr;
  handle_ = nullptr;
  if (!ok) throw capture_error(path_ + ": not all frames could be written: " + std::strerror(why));
}

}  // namespace rnic::tlm
