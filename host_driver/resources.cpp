// SPDX-License-Identifier: Apache-2.0
#include "host_driver/resources.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <vector>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/paravirtual.h"

namespace rnic::host_driver {

int icm_resources::map_tables(bus_if& bus, command_channel& channel, const config& cfg, const device_caps& caps,
                              const icm_profile& profile) {
  const auto base = [&](icm_region r) { return profile[r].base; };
  const auto count = [&](icm_region r) { return profile[r].count; };
  const auto cmpt = [&](unsigned type) {
    return base(icm_region::cmpt) + (std::uint64_t{type} * caps.cmpt_bytes << 24);
  };
  struct plan {
    icm_table* table;
    std::uint64_t base;
    std::uint32_t bytes;
    std::uint64_t objects, reserved;
  };
  const std::uint64_t qps = count(icm_region::qp);
  const plan plans[] = {
      {&cmpt_qp_, cmpt(0), caps.cmpt_bytes, qps, caps.reserved_qps},
      {&cmpt_srq_, cmpt(1), caps.cmpt_bytes, count(icm_region::srq), caps.reserved_srqs},
      {&cmpt_cq_, cmpt(2), caps.cmpt_bytes, count(icm_region::cq), caps.reserved_cqs},
      {&cmpt_eq_, cmpt(3), caps.cmpt_bytes, num_phys_eqs, num_phys_eqs},
      {&eqc_, base(icm_region::eq), caps.eqc_bytes, num_phys_eqs, num_phys_eqs},
      {&mtts_, base(icm_region::mtt), caps.mtt_bytes, count(icm_region::mtt), caps.reserved_mtts},
      {&dmpts_, base(icm_region::dmpt), caps.dmpt_bytes, count(icm_region::dmpt), caps.reserved_mpts},
      {&qpc_, base(icm_region::qp), caps.qpc_bytes, qps, caps.reserved_qps},
      {&auxc_, base(icm_region::auxc), caps.auxc_bytes, qps, caps.reserved_qps},
      {&altc_, base(icm_region::altc), caps.altc_bytes, qps, caps.reserved_qps},
      {&rdmarc_, base(icm_region::rdmarc), caps.rdmarc_bytes << cfg.log_rdmarc_per_qp, qps, caps.reserved_qps},
      {&cqc_, base(icm_region::cq), caps.cqc_bytes, count(icm_region::cq), caps.reserved_cqs},
      {&srqc_, base(icm_region::srq), caps.srqc_bytes, count(icm_region::srq), caps.reserved_srqs},
      {&mcg_, base(icm_region::mcg), profile.mcg_entry_bytes, count(icm_region::mcg), count(icm_region::mcg)},
  };
  for (const plan& p : plans) {
    if (const int error = p.table->init(bus, channel, p.base, p.bytes, p.objects, p.reserved)) return error;
  }
  return 0;
}

std::uint64_t icm_resources::lent_bytes() const {
  std::uint64_t chunks = 0;
  for (const icm_table* t : {&cmpt_qp_, &cmpt_srq_, &cmpt_cq_, &cmpt_eq_, &eqc_, &mtts_, &dmpts_, &qpc_, &auxc_, &altc_,
                             &rdmarc_, &cqc_, &srqc_, &mcg_})
    chunks += t->mapped_chunks();
  return chunks * icm_chunk_bytes;
}

void icm_resources::start(const config& cfg, const device_caps& caps, const icm_profile& profile) {
  const auto count = [&](icm_region r) { return static_cast<std::uint32_t>(profile[r].count); };
  num_qps_ = count(icm_region::qp);
  num_mpts_ = count(icm_region::dmpt);
  xrcdns_ = bitmap(1u << 16, (1u << 16) - 1, 1);  // 0 is none (net/pd.c:mlx4_init_xrcd_table)
  cqns_ = bitmap(count(icm_region::cq), count(icm_region::cq) - 1, caps.reserved_cqs);
  srqns_ = bitmap(count(icm_region::srq), count(icm_region::srq) - 1, caps.reserved_srqs);
  // Special QPs follow the firmware's and the raw Ethernet region, at a multiple of 8 (control plane 5.6).
  base_special_qpn_ = std::max(0x200u, (caps.reserved_qps + special_qps - 1) / special_qps * special_qps);
  first_qpn_ = base_special_qpn_ + special_qps + (cfg.virtual_functions != 0 ? abi::paravirtual::numbers : 0);
  qpns_ = bitmap(num_qps_, (1u << 23) - 1, first_qpn_);
  mpt_indices_ = bitmap(num_mpts_, ~0u, std::max(caps.reserved_mpts, cfg.first_mpt));
  mtt_ranges_ = buddy(profile[icm_region::mtt].log_count);
  if (caps.reserved_mtts != 0) mtt_ranges_.allocate(log2_up(caps.reserved_mtts));
  function_mtts_.clear();
  left_.fill(0);
}

void icm_resources::clean_up() {
  for (icm_table* t : {&mcg_, &srqc_, &cqc_, &rdmarc_, &altc_, &auxc_, &qpc_, &dmpts_, &mtts_, &eqc_, &cmpt_eq_,
                       &cmpt_cq_, &cmpt_srq_, &cmpt_qp_}) {
    t->clean_up();
  }
}

bitmap& icm_resources::numbers(resource what) {
  switch (what) {
    case resource::cq:
      return cqns_;
    case resource::srq:
      return srqns_;
    case resource::xrcd:
      return xrcdns_;
    case resource::mpt:
      return mpt_indices_;
    default:
      return qpns_;
  }
}

namespace {

/// Of several tables, or of none.
int take_in(std::initializer_list<icm_table*> tables, std::uint32_t number) {
  for (auto at = tables.begin(); at != tables.end(); ++at) {
    const int error = (*at)->get(number);
    if (error == 0) continue;
    while (at != tables.begin()) (*--at)->put(number);
    return error;
  }
  return 0;
}

}  // namespace

int icm_resources::take_contexts(resource what, std::uint32_t number) {
  switch (what) {
    case resource::qp:
      return take_in({&qpc_, &auxc_, &altc_, &rdmarc_, &cmpt_qp_}, number);
    case resource::cq:
      return take_in({&cqc_, &cmpt_cq_}, number);
    case resource::srq:
      return take_in({&srqc_, &cmpt_srq_}, number);
    case resource::mpt:
      return take_in({&dmpts_}, number);
    default:
      return 0;
  }
}

void icm_resources::put_contexts(resource what, std::uint32_t number) {
  const auto put = [number](std::initializer_list<icm_table*> tables) {
    for (icm_table* t : tables) t->put(number);
  };
  switch (what) {
    case resource::qp:
      return put({&cmpt_qp_, &rdmarc_, &altc_, &auxc_, &qpc_});
    case resource::cq:
      return put({&cmpt_cq_, &cqc_});
    case resource::srq:
      return put({&cmpt_srq_, &srqc_});
    case resource::mpt:
      return put({&dmpts_});
    default:
      return;
  }
}

int icm_resources::take(resource what, std::uint32_t* number, const std::uint32_t* wanted) {
  const bool special = what == resource::qp && wanted != nullptr && is_special(*wanted);
  const bool of_block = what == resource::qp && wanted != nullptr && *wanted < first_qpn_;
  if (!of_block && std::int64_t{numbers(what).free()} <= left_[static_cast<unsigned>(what)]) return -ENOMEM;
  if (wanted == nullptr) {
    *number = numbers(what).allocate();
    if (*number == bitmap::none) return -ENOMEM;
  } else {
    if (!special && !numbers(what).claim(*wanted)) return -EBUSY;
    *number = *wanted;
  }
  const int error = take_contexts(what, *number);
  if (error != 0 && !special) numbers(what).release(*number, what == resource::qp);
  return error;
}

void icm_resources::give_back(resource what, std::uint32_t number) {
  put_contexts(what, number);
  if (what == resource::qp && is_special(number)) return;
  numbers(what).release(number, what == resource::qp);
}

int icm_resources::take_qps(std::uint32_t count, std::uint32_t align, std::uint32_t* first) {
  const std::int64_t free = qpns_.free();
  if (free - std::int64_t{count} < left_[static_cast<unsigned>(resource::qp)]) return -ENOMEM;
  const std::uint32_t base = qpns_.allocate_range(count, align);
  if (base == bitmap::none) return -ENOMEM;
  for (std::uint32_t i = 0; i < count; ++i) {
    const int error = take_contexts(resource::qp, base + i);
    if (error == 0) continue;
    for (std::uint32_t k = 0; k < count; ++k) {
      if (k < i) put_contexts(resource::qp, base + k);
      qpns_.release(base + k, true);
    }
    return error;
  }
  *first = base;
  return 0;
}

int icm_resources::take_mtts_in(buddy& ranges, unsigned order, std::uint32_t* first) {
  *first = ranges.allocate(order);
  if (*first == buddy::none) return -ENOMEM;
  const int error = mtts_.get_range(*first, *first + (std::uint64_t{1} << order) - 1);
  if (error != 0) ranges.release(*first, order);
  return error;
}

int icm_resources::take_mtts(unsigned order, std::uint32_t* first) { return take_mtts_in(mtt_ranges_, order, first); }

int icm_resources::divide_mtts(unsigned functions, std::uint32_t entries) {
  const unsigned log_half = mtt_ranges_.log_size() - 1;
  functions_first_ = 1u << log_half;
  mtts_each_ = entries;
  if (std::uint64_t{entries} * functions > functions_first_ || !mtt_ranges_.claim_upper_half()) return -ENOMEM;
  for (unsigned f = 0; f < functions; ++f) function_mtts_.emplace_back(functions_first_ + f * entries, entries);
  return 0;
}

int icm_resources::take_mtts_of(unsigned function, unsigned order, std::uint32_t* first) {
  return take_mtts_in(function_mtts_[function - 1], order, first);
}

buddy& icm_resources::ranges_of(std::uint32_t mtt) {
  return function_mtts_.empty() || mtt < functions_first_ ? mtt_ranges_
                                                          : function_mtts_[(mtt - functions_first_) / mtts_each_];
}

void icm_resources::give_back_mtts(std::uint32_t first, unsigned order) {
  mtts_.put_range(first, first + (std::uint64_t{1} << order) - 1);
  ranges_of(first).release(first, order);
}

int icm_resources::write_mtts(std::uint32_t first, const std::uint64_t* entries, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint8_t* const entry = mtts_.find(first + i);
    if (entry == nullptr) return -EINVAL;
    abi::store64(entry, 0, entries[i]);
  }
  return 0;
}

// ---------------------------------------------------------------- of a virtual function

using namespace abi::res_op;

int asked_resources::take(resource what, std::uint32_t* number, const std::uint32_t* wanted) {
  const auto kind = static_cast<std::uint32_t>(what);
  if (wanted != nullptr) {  // numbers are the physical function's to choose
    if (what != resource::qp || by_number_.count(*wanted) != 0 ||
        channel_.command(abi::opcode::alloc_res, kind, map, *wanted) != 0)
      return -EOPNOTSUPP;
    by_number_.insert(*number = *wanted);
    return 0;
  }
  const bool two_steps = what == resource::qp || what == resource::mpt;
  std::uint64_t result = 0;
  const std::uint64_t in = what == resource::qp ? std::uint64_t{1} << 32 | 1 : 0;  // align and count
  if (const int error =
          channel_.execute({abi::opcode::alloc_res, kind, two_steps ? reserve : reserve_and_map, in, 0, &result}))
    return what == resource::mpt ? -ENOMEM : error;  // net/mr.c: mlx4_mpt_reserve says -1
  *number = static_cast<std::uint32_t>(result);
  if (!two_steps) return 0;
  const int error = channel_.command(abi::opcode::alloc_res, kind, map, *number);
  if (error != 0) channel_.command(abi::opcode::free_res, kind, reserve, *number | std::uint64_t{1} << 32);
  return error;
}

void asked_resources::give_back(resource what, std::uint32_t number) {
  const auto kind = static_cast<std::uint32_t>(what);
  if (what == resource::qp || what == resource::mpt) {
    channel_.command(abi::opcode::free_res, kind, map, number);
    if (what == resource::qp && by_number_.erase(number) != 0) return;  // it stays reserved
    channel_.command(abi::opcode::free_res, kind, reserve, number | std::uint64_t{1} << 32);
  } else {
    channel_.command(abi::opcode::free_res, kind, reserve_and_map, number);
  }
}

int asked_resources::take_mtts(unsigned order, std::uint32_t* first) {
  std::uint64_t result = 0;
  const int error = channel_.execute(
      {abi::opcode::alloc_res, static_cast<std::uint32_t>(resource::mtt), reserve_and_map, order, 0, &result});
  *first = static_cast<std::uint32_t>(result);
  return error != 0 ? -ENOMEM : 0;  // net/mr.c: mlx4_alloc_mtt_range says -1
}

void asked_resources::give_back_mtts(std::uint32_t first, unsigned order) {
  channel_.command(abi::opcode::free_res, static_cast<std::uint32_t>(resource::mtt), reserve_and_map,
                   first | std::uint64_t{order} << 32);
}

int asked_resources::write_mtts(std::uint32_t first, const std::uint64_t* entries, std::uint32_t count) {
  namespace f = abi::write_mtt_mailbox;
  while (count != 0) {
    const std::uint32_t part = std::min<std::uint32_t>(count, f::max_count);
    command_channel::mailbox box(channel_);
    abi::set(box.data(), f::start_index, std::uint64_t{first});
    for (std::uint32_t i = 0; i < part; ++i) abi::store64(box.data(), f::entries + 8 * i, entries[i]);
    if (const int error = channel_.write(box, abi::opcode::write_mtt, part)) return error;
    first += part;
    entries += part;
    count -= part;
  }
  return 0;
}

}  // namespace rnic::host_driver
