// SPDX-License-Identifier: Apache-2.0
// XRC: domains, and the queues in them (ib/main.c:mlx4_ib_alloc_xrcd, ib/qp.c, ib/srq.c; libmlx4 verbs.c).
#include <infiniband/mlx4dv.h>

#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"

namespace rnic::host_driver {

xrc_domain* device::open_xrcd() {
  std::uint32_t number = 0;
  if (const int error = open_ ? resources_->take(resource::xrcd, &number) : -ENODEV) {
    errno = -error;
    return nullptr;
  }
  auto x = std::make_unique<xrc_domain>();
  x->xrcdn = number;
  x->pd = alloc_pd();
  x->cq = x->pd != nullptr ? create_cq(1) : nullptr;
  if (x->cq == nullptr) {
    if (x->pd != nullptr) dealloc_pd(x->pd);
    resources_->give_back(resource::xrcd, number);
    return nullptr;
  }
  xrcds_.push_back(std::move(x));
  return xrcds_.back().get();
}

int device::close_xrcd(ibv_xrcd* xrcd) {
  const auto at = std::find_if(xrcds_.begin(), xrcds_.end(), [&](const auto& x) { return x.get() == xrcd; });
  if (at == xrcds_.end()) return -EINVAL;
  xrc_domain& x = **at;
  if (x.users != 0) return -EBUSY;
  if (const int error = destroy_cq(x.cq)) return error;
  dealloc_pd(x.pd);
  resources_->give_back(resource::xrcd, x.xrcdn);
  xrcds_.erase(at);
  return 0;
}

shared_receive_queue* device::create_srq_ex(ibv_srq_init_attr_ex* attr, const std::uint32_t* wanted) {
  const bool xrc = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attr->srq_type == IBV_SRQT_XRC;
  constexpr std::uint32_t needed = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || (xrc && (attr->comp_mask & needed) != needed)) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_srq_init_attr basic{attr->srq_context, attr->attr};
  shared_receive_queue* const srq = make_srq(attr->pd, &basic, xrc ? static_cast<xrc_domain*>(attr->xrcd) : nullptr,
                                             xrc ? static_cast<completion_queue*>(attr->cq) : nullptr, wanted);
  attr->attr = basic.attr;
  return srq;
}

queue_pair* device::create_qp_ex(ibv_qp_init_attr_ex* attr, mlx4dv_qp_init_attr* direct, const std::uint32_t* wanted) {
  ibv_qp_init_attr basic{};
  basic.qp_context = attr->qp_context;
  basic.send_cq = attr->send_cq;
  basic.recv_cq = attr->recv_cq;
  basic.srq = attr->srq;
  basic.cap = attr->cap;
  basic.qp_type = attr->qp_type;
  basic.sq_sig_all = attr->sq_sig_all;
  const bool receives = attr->qp_type == IBV_QPT_XRC_RECV;
  const std::uint32_t needed = receives ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  if ((attr->comp_mask & needed) == 0 || (is_xrc(attr->qp_type) && attr->srq != nullptr)) {
    errno = EINVAL;
    return nullptr;
  }
  xrc_domain* const xrc = receives ? static_cast<xrc_domain*>(attr->xrcd) : nullptr;
  if (receives) basic.send_cq = basic.recv_cq = xrc->cq;
  if (attr->qp_type == IBV_QPT_XRC_SEND) basic.recv_cq = basic.send_cq;
  const bool in_wqe = direct != nullptr && (direct->comp_mask & MLX4DV_QP_INIT_ATTR_MASK_INL_RECV) != 0;
  queue_pair* const qp =
      make_qp(receives ? xrc->pd : attr->pd, &basic, wanted, xrc, in_wqe ? &direct->inl_recv_sz : nullptr);
  attr->cap = basic.cap;
  return qp;
}

}  // namespace rnic::host_driver
