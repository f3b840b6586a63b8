// SPDX-License-Identifier: Apache-2.0
#include "tlm/pcapng_blocks.h"

#include <algorithm>
#include <cerrno>

namespace rnic::tlm {

namespace {

enum block_type : std::uint32_t { section_header = 0x0a0d0d0a, interface_description = 1, enhanced_packet = 6 };
enum option_code : std::uint16_t {
  end_of_options = 0,
  comment = 1,
  if_name = 2,
  shb_userappl = 4,
  if_tsresol = 9,
  if_fcslen = 13
};
constexpr std::uint16_t epb_flags = 2;

constexpr std::uint16_t link_type_ethernet = 1;
constexpr std::uint32_t longest_captured = 262'144;
// A picosecond (12) is legal too, but Wireshark 4.0 then wraps times behind 18.4 ms of a second.
constexpr std::uint8_t in_nanoseconds = 9, fcs_length = 4;
constexpr std::uint32_t inbound = 1, outbound = 2;
constexpr std::size_t longest_option = 65'535;

/// Appends to a block's body, little-endian; what has a length is filled up to a multiple of four bytes.
class body_writer {
 public:
  explicit body_writer(std::vector<std::uint8_t>& to) : bytes_(to) { bytes_.clear(); }
  void u16(std::uint16_t v) { number(v, 2); }
  void u32(std::uint32_t v) { number(v, 4); }
  void raw(const void* from, std::size_t n) {
    const auto* p = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), p, p + n);
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }
  void option(std::uint16_t code, const void* value, std::size_t n) {
    u16(code);
    u16(static_cast<std::uint16_t>(n));
    raw(value, n);
  }
  void text(std::uint16_t code, const std::string& s) {
    if (!s.empty()) option(code, s.data(), std::min(s.size(), longest_option));
  }

 private:
  void number(std::uint32_t v, unsigned n) {
    for (unsigned i = 0; i < n; ++i) bytes_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  std::vector<std::uint8_t>& bytes_;
};

}  // namespace

void pcapng_blocks::block(std::uint32_t type) {
  const auto length = static_cast<std::uint32_t>(body_.size() + 12);
  const std::uint32_t start[] = {type, length};
  write(start, sizeof start);
  write(body_.data(), body_.size());
  write(&length, sizeof length);
}

void pcapng_blocks::write(const void* from, std::size_t bytes) {
  if (!failed_) note(std::fwrite(from, 1, bytes, file_.get()) == bytes);
}

void pcapng_blocks::note(bool ok) {
  if (ok || failed_) return;
  failed_ = true;
  why_ = errno;
}

void pcapng_blocks::section(const std::string& about) {
  body_writer b(body_);
  b.u32(0x1a2b3c4d);
  b.u16(1);
  b.u16(0);
  b.u32(~std::uint32_t{0});  // length of the section: not given
  b.u32(~std::uint32_t{0});
  b.text(comment, about);
  b.text(shb_userappl, "rnic");
  b.option(end_of_options, nullptr, 0);
  block(section_header);
}

void pcapng_blocks::interface(const std::string& name) {
  body_writer b(body_);
  b.u16(link_type_ethernet);
  b.u16(0);
  b.u32(longest_captured);
  b.text(if_name, name);
  b.option(if_tsresol, &in_nanoseconds, sizeof in_nanoseconds);
  if (fcs_) b.option(if_fcslen, &fcs_length, sizeof fcs_length);
  b.option(end_of_options, nullptr, 0);
  block(interface_description);
}

void pcapng_blocks::add(const frame& f, const std::vector<std::uint8_t>& bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  body_writer b(body_);
  b.u32(f.interface);
  b.u32(static_cast<std::uint32_t>(f.ns >> 32));
  b.u32(static_cast<std::uint32_t>(f.ns));
  b.u32(length);
  b.u32(length);
  b.raw(bytes.data(), bytes.size());
  b.text(comment, f.comment);
  b.u16(epb_flags);
  b.u16(4);
  b.u32((f.inbound ? inbound : outbound) | (fcs_ ? std::uint32_t{fcs_length} << 5 : 0));
  b.option(end_of_options, nullptr, 0);
  block(enhanced_packet);
}

bool pcapng_blocks::close() {
  note(std::fflush(file_.get()) == 0);
  note(std::fclose(file_.release()) == 0);
  if (failed_) errno = why_;
  return !failed_;
}

}  // namespace rnic::tlm
