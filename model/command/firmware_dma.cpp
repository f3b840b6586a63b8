// SPDX-License-Identifier: Apache-2.0
// Firmware's DMA channel, on the core clock.
#include "model/command/firmware_dma.h"

#include <utility>

namespace rnic::command {

firmware_dma::firmware_dma(std::string name, sim::clock_domain& core)
    : clocked_block(name, core), dma(*this), jobs(this->name() + ".jobs", *this, 2) {}

void firmware_dma::tick() {
  if (busy_ && dma.response.can_pop()) {
    const pcie::dma_response r = dma.response.pop();
    RNIC_ASSERT(r.tag == tag_, name() + ": answer to another request");
    busy_ = false;
    answers_->push({r.status == pcie::dma_status::ok}, now_ps() + crossing_ps);
  }
  if (busy_ || !jobs.can_pop() || !dma.request.claim()) return;
  const dma_job job = jobs.pop();
  pcie::dma_request r;
  r.op = job.op;
  r.notify = true;
  r.function = job.function;
  r.length = job.length;
  r.address = job.address;
  r.tag = ++tag_;
  if (job.op == pcie::dma_request::kind::read)
    r.destination = buffer_.data();
  else
    r.source = buffer_.data();
  dma.request.push(std::move(r));
  busy_ = true;
}

}  // namespace rnic::command
