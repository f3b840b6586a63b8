// SPDX-License-Identifier: Apache-2.0
// Capture files by libpcap.
#include "tlm/capture.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/wire/icrc.h"

namespace rnic::tlm {

namespace {

/// Upper half of a file's link type (pcap savefile format): there is an FCS, of two times 16 bits.
constexpr std::uint32_t link_type_with_fcs = 0x2400'0000, link_type_fcs_mask = 0xf400'0000;
constexpr long link_type_at = 20;
constexpr std::uint32_t fcs_bytes = 4;

constexpr int snapshot_length = 262'144;
constexpr std::uint64_t ns_per_s = 1'000'000'000;
constexpr std::size_t expected_pending = 512;

/// libpcap reads the upper half of a link type and does not write it.
bool announce_fcs(std::FILE* file) {
  const std::uint32_t link_type = DLT_EN10MB | link_type_with_fcs;
  return std::fseek(file, link_type_at, SEEK_SET) == 0 && std::fwrite(&link_type, sizeof link_type, 1, file) == 1 &&
         std::fseek(file, 0, SEEK_END) == 0;
}

std::FILE* create(const std::string& path, bool overwrite) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL), 0644);
  if (fd < 0 && errno == EEXIST) throw capture_error(path + ": exists already, not overwritten");
  if (fd < 0) throw capture_error(path + ": " + std::strerror(errno));
  std::FILE* file = ::fdopen(fd, "wb");
  if (file == nullptr) ::close(fd);
  return file;
}

ssize_t read_unpacked(void* cookie, char* to, std::size_t bytes) {
  return gzread(static_cast<gzFile>(cookie), to, static_cast<unsigned>(std::min<std::size_t>(bytes, 1u << 30)));
}

int close_unpacked(void* cookie) { return gzclose(static_cast<gzFile>(cookie)) == Z_OK ? 0 : EOF; }

/// A file to read, unpacked on the way if it is a gzip file.
std::FILE* open_unpacked(const std::string& path) {
  gzFile packed = gzopen(path.c_str(), "rbe");
  if (packed == nullptr) throw capture_error(path + ": " + std::strerror(errno != 0 ? errno : ENOMEM));
  cookie_io_functions_t calls{};
  calls.read = read_unpacked;
  calls.close = close_unpacked;
  std::FILE* file = ::fopencookie(packed, "rb", calls);
  if (file == nullptr) {
    gzclose(packed);
    throw capture_error(path + ": out of memory");
  }
  return file;
}

}  // namespace

// ---------------------------------------------------------------- writer

capture_writer::capture_writer(const std::string& path, const config& cfg) : path_(path), config_(cfg) {
  handle_ = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, snapshot_length, PCAP_TSTAMP_PRECISION_NANO);
  if (handle_ == nullptr) throw capture_error(path_ + ": out of memory");
  std::FILE* file = nullptr;
  try {
    file = create(path_, cfg.overwrite);
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
  pending_.reserve(expected_pending);
  free_.reserve(expected_pending);
}

capture_writer::~capture_writer() {
  try {
    close();
  } catch (const capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // a destructor must not throw, and silence would hide a lost capture
  }
  for (const record* r : free_) delete r;
}

bool capture_writer::later(const record* a, const record* b) {
  if (a->at != b->at) return a->at > b->at;
  if (a->from != b->from) return a->from > b->from;
  return a->number > b->number;
}

void capture_writer::observe(unsigned from, const frame& f, sim::time_ps first_bit, sim::time_ps) {
  if (dumper_ == nullptr) return;
  if (!config_.fcs && wire::ethernet_fcs(f.data(), f.length) != f.fcs) {
    ++wrong_fcs_;
    return;
  }
  record* r = nullptr;
  if (free_.empty()) {
    r = new record;
  } else {
    r = free_.back();
    free_.pop_back();
  }
  r->at = first_bit;
  r->from = from;
  r->number = frames_++;
  r->bytes.assign(f.data(), f.data() + f.length);
  if (config_.fcs)
    for (unsigned bit = 0; bit < 32; bit += 8) r->bytes.push_back(static_cast<std::uint8_t>(f.fcs >> bit));
  pending_.push_back(r);
  std::push_heap(pending_.begin(), pending_.end(), later);
  if (first_bit > config_.reorder_ps) flush_before(first_bit - config_.reorder_ps);
}

void capture_writer::flush_before(sim::time_ps limit) {
  while (!pending_.empty() && pending_.front()->at < limit) {
    std::pop_heap(pending_.begin(), pending_.end(), later);
    write(*pending_.back());
    free_.push_back(pending_.back());
    pending_.pop_back();
  }
}

void capture_writer::write(const record& r) {
  pcap_pkthdr header{};
  const std::uint64_t ns = r.at / sim::ps_per_ns;
  header.ts.tv_sec = static_cast<time_t>(ns / ns_per_s);
  header.ts.tv_usec = static_cast<suseconds_t>(ns % ns_per_s);  // nanoseconds in a file of this precision
  header.caplen = header.len = static_cast<bpf_u_int32>(r.bytes.size());
  pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, r.bytes.data());
}

void capture_writer::close() {
  if (dumper_ == nullptr) return;
  flush_before(~sim::time_ps{0});
  const bool flushed = pcap_dump_flush(dumper_) == 0;
  const bool ok = flushed && std::ferror(pcap_dump_file(dumper_)) == 0;
  const int why = errno;
  pcap_dump_close(dumper_);
  pcap_close(handle_);
  dumper_ = nullptr;
  handle_ = nullptr;
  if (!ok) throw capture_error(path_ + ": not all frames could be written: " + std::strerror(why));
}

// ---------------------------------------------------------------- reader

namespace {

void strip_fcs(captured_frame& f) {
  f.wire_length -= fcs_bytes;
  if (f.length > f.wire_length) {  // otherwise the capture cut it off
    if (f.length == f.wire_length + fcs_bytes) {
      std::uint32_t fcs = 0;
      for (unsigned i = 0; i < fcs_bytes; ++i) fcs |= std::uint32_t{f.data[f.wire_length + i]} << (8 * i);
      f.wrong_fcs = fcs != wire::ethernet_fcs(f.data, f.wire_length);
    }
    f.length = f.wire_length;
  }
}

}  // namespace

capture_reader::capture_reader(const std::string& path) : path_(path) {
  char why[PCAP_ERRBUF_SIZE] = "";
  std::FILE* file = open_unpacked(path);
  handle_ = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why);
  if (handle_ == nullptr) {
    std::fclose(file);
    throw capture_error(path_ + ": " + why);
  }
  if (pcap_datalink(handle_) != DLT_EN10MB) {
    const char* type = pcap_datalink_val_to_name(pcap_datalink(handle_));
    const std::string is = type != nullptr ? type : std::to_string(pcap_datalink(handle_));
    pcap_close(handle_);
    throw capture_error(path_ + ": link type is " + is + ", not Ethernet");
  }
  fcs_ = (static_cast<std::uint32_t>(pcap_datalink_ext(handle_)) & link_type_fcs_mask) == link_type_with_fcs;
}

capture_reader::~capture_reader() {
  if (handle_ != nullptr) pcap_close(handle_);
}

capture_reader::result capture_reader::next(captured_frame& out) {
  if (!reason_.empty()) return result::damaged;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  const int got = pcap_next_ex(handle_, &header, &bytes);
  if (got == 1) {
    ++frames_;
    out.data = bytes;
    out.length = header->caplen;
    out.wire_length = header->len;
    out.wrong_fcs = false;
    if (fcs_ && header->len >= fcs_bytes) strip_fcs(out);
    out.time_ns =
        static_cast<std::uint64_t>(header->ts.tv_sec) * ns_per_s + static_cast<std::uint64_t>(header->ts.tv_usec);
    return result::frame;
  }
  if (got == PCAP_ERROR_BREAK) return result::end;
  reason_ = path_ + ": after frame " + std::to_string(frames_) + ": " + pcap_geterr(handle_);
  return result::damaged;
}

}  // namespace rnic::tlm
