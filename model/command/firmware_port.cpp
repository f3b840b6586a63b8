// SPDX-License-Identifier: Apache-2.0
// The embedded processor's bus interface.
#include "model/command/firmware_port.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnic::command {

using kind = firmware_request::kind;

firmware_port::firmware_port(std::string name, sim::clock_domain& firmware_clock, const config& cfg,
                             register_bus::cr_bus& bus, firmware_dma& dma)
    : clocked_block(name, firmware_clock),
      notices(this->name() + ".notices", *this),
      dma_answers(this->name() + ".dma_answers", *this, 2),
      config_(sim::checked(cfg, this->name())),
      bus_(bus),
      dma_(dma) {}

bool firmware_port::is_read() const { return request_.what == kind::dma_read || request_.what == kind::icm_read; }

void firmware_port::submit(const firmware_request& request) {
  RNIC_ASSERT(!busy_, name() + ": one request at a time");
  request_ = request;
  busy_ = true;
  done_bytes_ = 0;
  std::uint64_t cycles = config_.dma_start_cycles;
  if (request.what == kind::cr_read) cycles = config_.cr_read_cycles;
  if (request.what == kind::cr_write) cycles = config_.cr_write_cycles;
  if (request.what == kind::spend) cycles = std::max<std::uint64_t>(request.length, 1);
  due_ = now() + cycles;
  wake_at(due_);
}

void firmware_port::tick() {
  take_notices();
  if (dma_busy_ && dma_answers.can_pop()) {
    const dma_done answer = dma_answers.pop();
    dma_busy_ = false;
    if (dma_stale_) {
      dma_stale_ = false;
    } else if (!answer.ok) {
      finish(false, 0);
    } else {
      if (is_read()) std::memcpy(request_.to + done_bytes_, dma_.buffer(), piece_);
      done_bytes_ += piece_;
      if (done_bytes_ == request_.length) {
        finish(true, 0);
      } else {
        due_ = now() + config_.dma_start_cycles;
      }
    }
  }
  if (!busy_ || due_ == sim::never) return;
  if (due_ > now())
    wake_at(due_);
  else if (!dma_busy_)
    execute();
}

void firmware_port::take_notices() {
  const unsigned lines = notices.take();
  if (lines == 0) return;
  if (register_bus::interrupt_lines::has(lines, register_bus::notice::reset)) reset();
  processor_->interrupt();
}

void firmware_port::reset() {
  busy_ = false;
  due_ = sim::never;
  dma_stale_ = dma_busy_;
  for (register_bus::reset_target_if* target : reset_targets_) target->device_reset();
  processor_->reset();
}

void firmware_port::execute() {
  due_ = sim::never;
  switch (request_.what) {
    case kind::cr_read:
      finish(true, bus_.read(request_.address));
      return;
    case kind::cr_write:
      bus_.write(request_.address, request_.value);
      finish(true, 0);
      return;
    case kind::spend:
      finish(true, 0);
      return;
    default:
      break;
  }
  if (request_.length == 0)
    finish(true, 0);
  else if (request_.length - 1 > ~request_.memory)
    finish(false, 0);  // round the end of the address space
  else
    next_piece();
}

/// Starts the DMA of what is left, up to the end of the 4 KiB page and the size of the buffer.
void firmware_port::next_piece() {
  const std::uint64_t from = request_.memory + done_bytes_;
  std::uint64_t address = from;
  if (request_.what == kind::icm_read || request_.what == kind::icm_write) {
    const std::optional<std::uint64_t> bus = translate_ ? translate_(from) : std::nullopt;
    if (!bus) {
      finish(false, 0);
      return;
    }
    address = *bus;
  }
  const std::uint64_t page_left = 4096 - from % 4096;
  piece_ = static_cast<std::uint32_t>(
      std::min({request_.length - done_bytes_, page_left, std::uint64_t{firmware_dma::buffer_bytes}}));
  dma_job job;
  job.op = is_read() ? pcie::dma_request::kind::read : pcie::dma_request::kind::write;
  job.function = request_.function;
  job.length = piece_;
  job.address = address;
  if (!is_read()) std::memcpy(dma_.buffer(), request_.from + done_bytes_, piece_);
  dma_busy_ = true;
  dma_.jobs.push(job, now_ps() + crossing_ps);
}

void firmware_port::finish(bool ok, std::uint32_t value) {
  busy_ = false;
  due_ = sim::never;
  processor_->request_done(ok, value);
}

}  // namespace rnic::command
