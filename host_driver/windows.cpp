// SPDX-License-Identifier: Apache-2.0
// Memory windows and regions for fast registration (net/mr.c:mlx4_mw_enable, mlx4_mr_enable; ib/mr.c; libmlx4 verbs.c).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

namespace {
constexpr std::uint32_t qp_flag_bound = 1u << 7;
constexpr std::uint32_t max_fast_reg_pages = 511;  // MLX4_MAX_FAST_REG_PAGES
}  // namespace

int device::take_mpt(std::uint32_t* index) { return resources_->take(resource::mpt, index); }

void device::put_mpt(std::uint32_t index) { resources_->give_back(resource::mpt, index); }

memory_window* device::alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  const auto fail = [](int error) -> memory_window* {
    errno = error;
    return nullptr;
  };
  if (pd == nullptr || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)) return fail(EINVAL);
  auto* domain = static_cast<protection_domain*>(pd);
  auto mw = std::make_unique<memory_window>();
  if (const int error = take_mpt(&mw->index)) return fail(-error);
  command_channel::mailbox box(channel_);
  std::uint8_t* m = box.data();
  abi::set(m, abi::mpt::key, mw->index);
  abi::set(m, abi::mpt::pd_flags, domain->pdn);
  if (type == IBV_MW_TYPE_2) {
    abi::set(m, abi::mpt::owner, abi::mpt::owner_free);
    abi::set(m, abi::mpt::qpn, qp_flag_bound);
    abi::set(m, abi::mpt::pd_flags, domain->pdn | abi::mpt::pd_en_inv);
  }
  if (const int error = channel_.write(box, abi::opcode::sw2hw_mpt, mw->index & (num_mpts_ - 1))) {
    put_mpt(mw->index);
    return fail(-error);
  }
  mw->pd = pd;
  mw->type = type;
  mw->rkey = abi::index_to_key(mw->index);
  ++domain->users;
  mws_.push_back(std::move(mw));
  return mws_.back().get();
}

int device::dealloc_mw(ibv_mw* mw) {
  const auto at = std::find_if(mws_.begin(), mws_.end(), [&](const auto& w) { return w.get() == mw; });
  if (at == mws_.end()) return -EINVAL;
  const std::uint32_t index = (*at)->index;
  if (const int error = channel_.command(abi::opcode::hw2sw_mpt, index & (num_mpts_ - 1), 1)) return error;
  put_mpt(index);
  --static_cast<protection_domain*>(mw->pd)->users;
  mws_.erase(at);
  return 0;
}

int device::bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind* bind) {
  const ibv_mw_bind_info& info = bind->bind_info;
  if (mw->type != IBV_MW_TYPE_1 || (info.mr == nullptr && info.length != 0)) return -EINVAL;
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.opcode = IBV_WR_BIND_MW;
  wr.wr_id = bind->wr_id;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = info;
  const int error = post_send(qp, &wr, &bad);
  if (error == 0) mw->rkey = wr.bind_mw.rkey;
  return error;
}

memory_region* device::alloc_fast_reg_mr(ibv_pd* pd, std::uint32_t max_pages) {
  const auto fail = [](int error) -> memory_region* {
    errno = error;
    return nullptr;
  };
  if (pd == nullptr || max_pages == 0 || max_pages > max_fast_reg_pages) return fail(EINVAL);
  auto* domain = static_cast<protection_domain*>(pd);
  auto mr = std::make_unique<memory_region>();
  mr->page_list = bus_.allocate(max_pages * abi::mtt::bytes);
  if (mr->page_list.pointer == nullptr) return fail(ENOMEM);
  int error = take_mpt(&mr->index);
  if (error == 0) {
    const std::vector<std::uint64_t> none(max_pages, 0);
    error = allocate_mtt(none.data(), max_pages, mr->mtt);
    if (error == 0) {
      resources_->write_mtts(mr->mtt.first, none.data(), max_pages);
      command_channel::mailbox box(channel_);
      std::uint8_t* m = box.data();
      abi::set(m, abi::mpt::flags, abi::mpt::flag_mio | abi::mpt::flag_region);
      abi::set(m, abi::mpt::owner, abi::mpt::owner_free);
      abi::set(m, abi::mpt::key, mr->index);
      abi::set(m, abi::mpt::pd_flags,
               domain->pdn | abi::mpt::pd_en_inv | abi::mpt::pd_fast_reg | abi::mpt::pd_remote_access);
      abi::set(m, abi::mpt::mtt_address, std::uint64_t{mr->mtt.first} * caps_.mtt_bytes);
      abi::set(m, abi::mpt::mtt_count, 1u << mr->mtt.order);
      error = channel_.write(box, abi::opcode::sw2hw_mpt, mr->index & (num_mpts_ - 1));
      if (error != 0) free_mtt(mr->mtt);
    }
    if (error != 0) put_mpt(mr->index);
  }
  if (error != 0) {
    bus_.release(mr->page_list);
    return fail(-error);
  }
  mr->pd = pd;
  mr->max_pages = max_pages;
  mr->lkey = mr->rkey = abi::index_to_key(mr->index);
  ++domain->users;
  mrs_.push_back(std::move(mr));
  return mrs_.back().get();
}

int device::set_fast_reg_pages(memory_region* mr, const std::uint64_t* pages, std::uint32_t count, unsigned log_page,
                               std::uint64_t iova, std::uint64_t length) {
  if (count > mr->max_pages || log_page < 12 || log_page > 31) return -EINVAL;
  for (std::uint32_t i = 0; i < count; ++i)
    abi::store64(mr->page_list.pointer, i * abi::mtt::bytes, pages[i] | abi::mtt::present);
  mr->log_page = log_page;
  mr->iova = iova;
  mr->length = length;
  return 0;
}

}  // namespace rnic::host_driver
