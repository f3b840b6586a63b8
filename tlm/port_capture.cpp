// SPDX-License-Identifier: Apache-2.0
#include "tlm/port_capture.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/wire/icrc.h"
#include "tlm/create_file.h"

namespace rnic::tlm {

port_capture::port_capture(const std::string& path, const capture_writer::config& cfg)
    : path_(path), config_(cfg), sorter_(cfg.reorder_ps) {
  file_ptr file(create_file(path_, cfg.overwrite));
  if (file == nullptr) throw capture_error(path_ + ": out of memory");
  blocks_ = std::make_unique<pcapng_blocks>(std::move(file), cfg.fcs);
}

port_capture::~port_capture() {
  try {
    close();
  } catch (const capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // a destructor must not throw, and silence would hide a lost capture
  }
}

unsigned port_capture::add_port(const std::string& name) {
  ports_.push_back(name);
  return static_cast<unsigned>(ports_.size() - 1);
}

void port_capture::sent(unsigned port, const payload::frame& f, sim::time_ps first_bit) {
  if (blocks_ == nullptr) return;
  add(port, false, f, first_bit, 0);
  // A cable may be long: how old a frame is is a matter of when it was sent.
  sorter_.flush_old(first_bit, [this](const frame_sorter::record& r) { write(r); });
}

void port_capture::received(unsigned port, const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable) {
  if (blocks_ != nullptr) add(port, true, f, first_bit, cable);
}

void port_capture::add(unsigned port, bool inbound, const payload::frame& f, sim::time_ps first_bit,
                       sim::time_ps cable) {
  if (!config_.fcs && wire::ethernet_fcs(f.data(), f.length) != f.fcs) {
    ++wrong_fcs_;
    return;
  }
  frame_sorter::record& r = sorter_.keep(f, 2 * port + (inbound ? 1 : 0), first_bit + cable, config_.fcs);
  r.comment.clear();
  if (notes_ != nullptr) notes_->describe(f, first_bit, cable, r.comment);
}

void port_capture::write_interfaces() {
  began_ = true;
  blocks_->section("");
  for (const std::string& name : ports_) blocks_->interface(name);
}

void port_capture::write(const frame_sorter::record& r) {
  if (!began_) write_interfaces();
  blocks_->add({r.from / 2, r.from % 2 != 0, r.at / sim::ps_per_ns, r.comment}, r.bytes);
}

void port_capture::close() {
  if (blocks_ == nullptr) return;
  sorter_.flush_before(~sim::time_ps{0}, [this](const frame_sorter::record& r) { write(r); });
  if (!began_) write_interfaces();
  const bool ok = blocks_->close();
  const int why = errno;
  blocks_ = nullptr;
  if (!ok) throw capture_error(path_ + ": not all frames could be written: " + std::strerror(why));
}

}  // namespace rnic::tlm
