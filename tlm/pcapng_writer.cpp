// SPDX-License-Identifier: Apache-2.0
#include "tlm/pcapng_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "model/wire/icrc.h"
#include "tlm/create_file.h"

namespace rnic::tlm {

namespace {

enum block : std::uint32_t { section_header = 0x0a0d0d0a, interface_description = 1, enhanced_packet = 6 };
enum code : std::uint16_t {
  end_of_options = 0,
  comment = 1,
  if_name = 2,
  shb_userappl = 4,
  if_tsresol = 9,
  if_fcslen = 13
};
constexpr std::uint16_t epb_flags = 2;

constexpr std::uint16_t link_type_ethernet = 1;
constexpr std::uint32_t snapshot_length = 262'144;
constexpr std::uint8_t nanoseconds = 9, fcs_bytes = 4;
constexpr std::uint32_t inbound = 1, outbound = 2;
constexpr std::size_t longest_option = 65'535;

class body {
 public:
  void u16(std::uint16_t v) { number(v, 2); }
  void u32(std::uint32_t v) { number(v, 4); }
  void raw(const void* from, std::size_t n) {
    const auto* p = static_cast<const std::uint8_t*>(from);
    bytes.insert(bytes.end(), p, p + n);
    bytes.resize((bytes.size() + 3) / 4 * 4);
  }
  void option(std::uint16_t code, const void* value, std::size_t n) {
    u16(code);
    u16(static_cast<std::uint16_t>(n));
    raw(value, n);
  }
  void text(std::uint16_t code, const std::string& s) {
    if (!s.empty()) option(code, s.data(), std::min(s.size(), longest_option));
  }
  std::vector<std::uint8_t> bytes;

 private:
  void number(std::uint32_t v, unsigned n) {
    for (unsigned i = 0; i < n; ++i) bytes.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
};

/// In the folder of the result, which has room for it, or where the system keeps such files.
std::FILE* open_stage(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return std::tmpfile();
  std::FILE* file = ::fdopen(fd, "w+b");
  if (file == nullptr) ::close(fd);
  return file;
}

}  // namespace

pcapng_writer::pcapng_writer(const std::string& path, const config& cfg)
    : path_(path), config_(cfg), sorter_(cfg.capture.reorder_ps) {
  file_.reset(create_file(path_, cfg.capture.overwrite));
  stage_.reset(open_stage(path_));
  if (file_ == nullptr || stage_ == nullptr) fail("no file for the frames until they are written");
}

pcapng_writer::~pcapng_writer() {
  try {
    close({}, "");
  } catch (const capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // a destructor must not throw, and silence would hide a lost capture
  }
}

void pcapng_writer::fail(const char* what) const {
  throw capture_error(path_ + ": " + what + ": " + std::strerror(errno));
}

void pcapng_writer::observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps) {
  if (stage_ == nullptr) return;
  if (!config_.capture.fcs && wire::ethernet_fcs(f.data(), f.length) != f.fcs) return;
  sorter_.add(f, from, first_bit, config_.capture.fcs, [this](const frame_sorter::record& r) { store(r); });
}

void pcapng_writer::store(const frame_sorter::record& r) {
  const stored s{r.at, r.from, static_cast<std::uint32_t>(r.bytes.size())};
  failed_ = failed_ || std::fwrite(&s, sizeof s, 1, stage_.get()) != 1 ||
            std::fwrite(r.bytes.data(), 1, r.bytes.size(), stage_.get()) != r.bytes.size();
}

void pcapng_writer::write_block(std::uint32_t type, const std::vector<std::uint8_t>& body) {
  const auto length = static_cast<std::uint32_t>(body.size() + 12);
  const std::uint32_t start[] = {type, length};
  failed_ = failed_ || std::fwrite(start, sizeof start, 1, file_.get()) != 1 ||
            std::fwrite(body.data(), 1, body.size(), file_.get()) != body.size() ||
            std::fwrite(&length, sizeof length, 1, file_.get()) != 1;
}

void pcapng_writer::write_section(const std::string& about) {
  body b;
  b.u32(0x1a2b3c4d);
  b.u16(1);
  b.u16(0);
  b.u32(~std::uint32_t{0});  // length of the section: not given
  b.u32(~std::uint32_t{0});
  b.text(comment, about);
  b.text(shb_userappl, "rnic");
  b.option(end_of_options, nullptr, 0);
  write_block(section_header, b.bytes);
}

void pcapng_writer::write_interface(unsigned from) {
  body b;
  b.u16(link_type_ethernet);
  b.u16(0);
  b.u32(snapshot_length);
  b.text(if_name, config_.names[from]);
  b.option(if_tsresol, &nanoseconds, sizeof nanoseconds);
  if (config_.capture.fcs) b.option(if_fcslen, &fcs_bytes, sizeof fcs_bytes);
  b.option(end_of_options, nullptr, 0);
  write_block(interface_description, b.bytes);
}

void pcapng_writer::write_frame(const stored& s, const std::vector<std::uint8_t>& bytes, const std::string& text) {
  const std::uint64_t ns = clock_.of(s.at);
  body b;
  b.u32(s.from);
  b.u32(static_cast<std::uint32_t>(ns >> 32));
  b.u32(static_cast<std::uint32_t>(ns));
  b.u32(s.length);
  b.u32(s.length);
  b.raw(bytes.data(), bytes.size());
  b.text(comment, text);
  b.u16(epb_flags);
  b.u16(4);
  b.u32((config_.inbound[s.from] ? inbound : outbound) | (config_.capture.fcs ? std::uint32_t{fcs_bytes} << 5 : 0));
  b.option(end_of_options, nullptr, 0);
  write_block(enhanced_packet, b.bytes);
}

void pcapng_writer::close(const frame_comments& comments, const std::string& about) {
  if (stage_ == nullptr) return;
  sorter_.flush_before(~sim::time_ps{0}, [this](const frame_sorter::record& r) { store(r); });
  const file_ptr stage = std::move(stage_);
  errno = 0;
  if (failed_ || std::fflush(stage.get()) != 0) fail("not all frames could be kept until they are written");
  std::rewind(stage.get());
  write_section(about);
  for (const unsigned from : {0u, 1u}) write_interface(from);
  stored s{};
  std::vector<std::uint8_t> bytes;
  while (!failed_ && std::fread(&s, sizeof s, 1, stage.get()) == 1) {
    bytes.resize(s.length);
    failed_ = std::fread(bytes.data(), 1, bytes.size(), stage.get()) != bytes.size();
    const auto text = comments.find({s.from, s.at});
    write_frame(s, bytes, text == comments.end() ? std::string{} : text->second);
  }
  failed_ = failed_ || std::ferror(stage.get()) != 0 || std::fflush(file_.get()) != 0;
  const int why = errno;
  failed_ = std::fclose(file_.release()) != 0 || failed_;
  errno = why != 0 ? why : errno;
  if (failed_) fail("not all frames could be written");
}

}  // namespace rnic::tlm
