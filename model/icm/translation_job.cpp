// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation_job.h"

#include <algorithm>

#include "model/abi/endian.h"

namespace rnic::icm {

void translation_job::take(const translation_fetch& f, unsigned log_line) {
  if (f.mpt) {
    mpt = f.failed ? mpt_entry{} : decode_mpt(f.data.data());
    if (f.failed) mpt.flags = 0xfu << 28;  // as owned by software
    have_mpt = true;
    return;
  }
  for (page_part& p : pages) {
    if (p.resolved || p.index >> log_line != f.line) continue;
    const std::uint64_t position = p.index & ((1u << log_line) - 1);
    p.entry = f.failed ? 0 : abi::load64(f.data.data(), 8 * position);
    p.resolved = true;
  }
}

void translation_job::split(std::uint64_t mtt_address, std::uint64_t offset) {
  const std::uint64_t page_bytes = std::uint64_t{1} << log_page;
  const std::uint64_t first = offset & (page_bytes - 1);
  pages[0].index = (mtt_address >> 3) + (offset >> log_page);
  pages[0].offset = first;
  answer.count = first + request.length > page_bytes ? 2 : 1;
  const std::uint64_t here = std::min<std::uint64_t>(request.length, page_bytes - first);
  answer.segments[0].length = static_cast<std::uint32_t>(here);
  if (answer.count == 2) {
    pages[1].index = pages[0].index + 1;
    answer.segments[1].length = static_cast<std::uint32_t>(request.length - here);
  } else {
    pages[1].resolved = true;
  }
  pages_known = true;
}

void translation_job::answer_contiguous() {
  if (request.length - 1 > ~request.va) {
    answer.status = translate_status::out_of_range;
    return;
  }
  answer.count = 1;
  answer.segments[0] = {request.va, request.length};
}

void translation_job::answer_pages() {
  const std::uint64_t in_page = (std::uint64_t{1} << log_page) - 1;
  for (unsigned i = 0; i < answer.count; ++i) {
    if ((pages[i].entry & 1) == 0) answer.status = translate_status::not_mapped;
    answer.segments[i].address = (pages[i].entry & ~in_page) + pages[i].offset;
  }
  if (answer.status == translate_status::ok) return;
  answer.count = 0;
  answer.segments = {};
}

}  // namespace rnic::icm
