// SPDX-License-Identifier: Apache-2.0
#include "model/completion/buffer_pages.h"

namespace rnic::completion {

void buffer_pages::service() {
  if (!port.response.can_pop()) return;
  const icm::translate_response answer = port.response.pop();
  request& r = requests_[answer.tag & 63];
  r.active = false;
  if (r.stale) return;
  const bool ok = answer.status == icm::translate_status::ok;
  entry(r.key) = {true, !ok, r.key, r.number, ok ? answer.segments[0].address : 0};
}

buffer_pages::result buffer_pages::address(queue q, std::uint32_t number, std::uint64_t mtt_address,
                                           std::uint8_t log_page, std::uint64_t offset, std::uint16_t function,
                                           std::uint64_t& bus) {
  const std::uint64_t key = key_of(q, number);
  const std::uint64_t wanted = offset >> 12;
  page& p = entry(key);
  if (p.valid && p.key == key && p.number == wanted) {
    p.valid = !p.failed;
    bus = p.bus | (offset & 0xfff);
    return p.failed ? result::failed : result::known;
  }
  request* unused = nullptr;
  for (request& r : requests_) {
    if (r.active && !r.stale && r.key == key && r.number == wanted) return result::pending;
    if (!r.active && unused == nullptr) unused = &r;
  }
  if (unused == nullptr || !port.request.claim()) return result::pending;
  *unused = {true, false, key, wanted};
  icm::translate_request t;
  t.what = icm::translate_request::kind::buffer;
  t.access = icm::access::local_write;
  t.log_page = log_page;
  t.function = function;
  t.length = 4096;
  t.va = wanted << 12;
  t.buffer_mtt = mtt_address;
  t.tag = static_cast<std::uint64_t>(unused - requests_.data());
  port.request.push(t);
  return result::pending;
}

void buffer_pages::forget(queue q, std::uint32_t number) {
  const std::uint64_t key = key_of(q, number);
  if (page& p = entry(key); p.key == key) p.valid = false;
  for (request& r : requests_)
    if (r.key == key) r.stale = true;
}

void buffer_pages::forget_all() {
  for (page& p : pages_) p.valid = false;
  for (request& r : requests_) r.stale = true;
}

}  // namespace rnic::completion
