// SPDX-License-Identifier: Apache-2.0
// Layouts against the user-space library's own header, which knows nothing of this model.
#include <gtest/gtest.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <infiniband/mlx4dv.h>
#pragma GCC diagnostic pop

#include <cstddef>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"

namespace rnic {
namespace wqe = abi::wqe;

TEST(Mlx4dv, ControlSegment) {
  EXPECT_EQ(wqe::control::bytes, sizeof(mlx4_wqe_ctrl_seg));
  EXPECT_EQ(wqe::control::owner.offset, offsetof(mlx4_wqe_ctrl_seg, owner_opcode));
  EXPECT_EQ(wqe::control::size.offset, offsetof(mlx4_wqe_ctrl_seg, fence_size));
  EXPECT_EQ(wqe::control::qpn.offset, offsetof(mlx4_wqe_ctrl_seg, bf_qpn));
  EXPECT_EQ(wqe::control::flags.offset, offsetof(mlx4_wqe_ctrl_seg, srcrb_flags));
  EXPECT_EQ(wqe::control::immediate.offset, offsetof(mlx4_wqe_ctrl_seg, imm));
  EXPECT_EQ(wqe::control::fence_bit, unsigned{MLX4_WQE_CTRL_FENCE});
  EXPECT_EQ(wqe::control::cq_update, unsigned{MLX4_WQE_CTRL_CQ_UPDATE});
  EXPECT_EQ(wqe::control::solicited, unsigned{MLX4_WQE_CTRL_SOLICIT});
  EXPECT_EQ(wqe::control::strong_order, unsigned{MLX4_WQE_CTRL_STRONG_ORDER});
  EXPECT_EQ(wqe::control::ip_checksum, unsigned{MLX4_WQE_CTRL_IP_HDR_CSUM});
}

TEST(Mlx4dv, OtherSegments) {
  EXPECT_EQ(wqe::data::bytes, sizeof(mlx4_wqe_data_seg));
  EXPECT_EQ(wqe::data::lkey.offset, offsetof(mlx4_wqe_data_seg, lkey));
  EXPECT_EQ(wqe::data::address.offset, offsetof(mlx4_wqe_data_seg, addr));
  EXPECT_EQ(wqe::data::invalid_lkey, unsigned{MLX4_INVALID_LKEY});
  EXPECT_EQ(wqe::inline_data::header, sizeof(mlx4_wqe_inline_seg));
  EXPECT_EQ(wqe::inline_data::boundary, unsigned{MLX4_INLINE_ALIGN});
  EXPECT_EQ(wqe::remote_address::bytes, sizeof(mlx4_wqe_raddr_seg));
  EXPECT_EQ(wqe::remote_address::address.offset, offsetof(mlx4_wqe_raddr_seg, raddr));
  EXPECT_EQ(wqe::remote_address::rkey.offset, offsetof(mlx4_wqe_raddr_seg, rkey));
  EXPECT_EQ(wqe::atomic::bytes, sizeof(mlx4_wqe_atomic_seg));
  EXPECT_EQ(wqe::atomic::compare.offset, offsetof(mlx4_wqe_atomic_seg, compare));
  EXPECT_EQ(wqe::srq_next::bytes, sizeof(mlx4_wqe_srq_next_seg));
  EXPECT_EQ(wqe::srq_next::index.offset, offsetof(mlx4_wqe_srq_next_seg, next_wqe_index));
  EXPECT_EQ(wqe::bind::bytes, sizeof(mlx4_wqe_bind_seg));
  EXPECT_EQ(wqe::bind::address.offset, offsetof(mlx4_wqe_bind_seg, addr));
  EXPECT_EQ(wqe::bind::length.offset, offsetof(mlx4_wqe_bind_seg, length));
  EXPECT_EQ(wqe::local_invalidate::bytes, sizeof(mlx4_wqe_local_inval_seg));
  EXPECT_EQ(wqe::local_invalidate::key.offset, offsetof(mlx4_wqe_local_inval_seg, mem_key));
}

TEST(Mlx4dv, DatagramSegment) {
  EXPECT_EQ(wqe::datagram::bytes, sizeof(mlx4_wqe_datagram_seg));
  EXPECT_EQ(wqe::datagram::mac_index.offset, offsetof(mlx4_av, g_slid));
  EXPECT_EQ(wqe::datagram::gid_index.offset, offsetof(mlx4_av, gid_index));
  EXPECT_EQ(wqe::datagram::static_rate.offset, offsetof(mlx4_av, stat_rate));
  EXPECT_EQ(wqe::datagram::hop_limit.offset, offsetof(mlx4_av, hop_limit));
  EXPECT_EQ(wqe::datagram::flow_label.offset, offsetof(mlx4_av, sl_tclass_flowlabel));
  EXPECT_EQ(wqe::datagram::remote_gid, offsetof(mlx4_av, dgid));
  EXPECT_EQ(wqe::datagram::qpn.offset, offsetof(mlx4_wqe_datagram_seg, dqpn));
  EXPECT_EQ(wqe::datagram::qkey.offset, offsetof(mlx4_wqe_datagram_seg, qkey));
  EXPECT_EQ(wqe::datagram::vlan.offset, offsetof(mlx4_wqe_datagram_seg, vlan));
  EXPECT_EQ(wqe::datagram::dmac, offsetof(mlx4_wqe_datagram_seg, mac));
}

TEST(Mlx4dv, Cqe) {
  EXPECT_EQ(abi::cqe::bytes, sizeof(mlx4_cqe));
  EXPECT_EQ(abi::cqe::qpn.offset, offsetof(mlx4_cqe, vlan_my_qpn));
  EXPECT_EQ(abi::cqe::immediate.offset, offsetof(mlx4_cqe, immed_rss_invalid));
  EXPECT_EQ(abi::cqe::remote_qpn.offset, offsetof(mlx4_cqe, g_mlpath_rqpn));
  EXPECT_EQ(abi::cqe::sl_vid.offset, offsetof(mlx4_cqe, sl_vid));
  EXPECT_EQ(abi::cqe::ethernet_status.offset, offsetof(mlx4_cqe, status));
  EXPECT_EQ(abi::cqe::byte_count.offset, offsetof(mlx4_cqe, byte_cnt));
  EXPECT_EQ(abi::cqe::wqe_index.offset, offsetof(mlx4_cqe, wqe_index));
  EXPECT_EQ(abi::cqe::checksum.offset, offsetof(mlx4_cqe, checksum));
  EXPECT_EQ(abi::cqe::owner_opcode.offset, offsetof(mlx4_cqe, owner_sr_opcode));
  EXPECT_EQ(abi::cqe::vendor_error.offset, offsetof(mlx4_err_cqe, vendor_err));
  EXPECT_EQ(abi::cqe::syndrome.offset, offsetof(mlx4_err_cqe, syndrome));
  EXPECT_EQ(abi::cqe::owner_bit, unsigned{MLX4_CQE_OWNER_MASK});
  EXPECT_EQ(abi::cqe::send_bit, unsigned{MLX4_CQE_IS_SEND_MASK});
  EXPECT_EQ(abi::cqe::opcode_error, unsigned{MLX4_CQE_OPCODE_ERROR});
  EXPECT_EQ(abi::cqe::opcode_resize, unsigned{MLX4_CQE_OPCODE_RESIZE});
}

TEST(Mlx4dv, CodesAndDoorbells) {
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::rdma_write), unsigned{MLX4_OPCODE_RDMA_WRITE});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::rdma_write_imm), unsigned{MLX4_OPCODE_RDMA_WRITE_IMM});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::send), unsigned{MLX4_OPCODE_SEND});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::send_imm), unsigned{MLX4_OPCODE_SEND_IMM});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::send_inval), unsigned{MLX4_OPCODE_SEND_INVAL});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::rdma_read), unsigned{MLX4_OPCODE_RDMA_READ});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::atomic_cs), unsigned{MLX4_OPCODE_ATOMIC_CS});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::atomic_fa), unsigned{MLX4_OPCODE_ATOMIC_FA});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::bind_mw), unsigned{MLX4_OPCODE_BIND_MW});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::fast_reg), unsigned{MLX4_OPCODE_FMR});
  EXPECT_EQ(static_cast<unsigned>(wqe::opcode::local_inval), unsigned{MLX4_OPCODE_LOCAL_INVAL});
  EXPECT_EQ(static_cast<unsigned>(abi::cqe::error::retry_exceeded),
            unsigned{MLX4_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR});
  EXPECT_EQ(static_cast<unsigned>(abi::cqe::error::rnr_retry_exceeded), unsigned{MLX4_CQE_SYNDROME_RNR_RETRY_EXC_ERR});
  EXPECT_EQ(static_cast<unsigned>(abi::cqe::error::remote_access), unsigned{MLX4_CQE_SYNDROME_REMOTE_ACCESS_ERR});
  EXPECT_EQ(static_cast<unsigned>(abi::cqe::error::flushed), unsigned{MLX4_CQE_SYNDROME_WR_FLUSH_ERR});
  EXPECT_EQ(abi::uar::send_doorbell, unsigned{MLX4_SEND_DOORBELL});
  EXPECT_EQ(abi::uar::cq_doorbell, unsigned{MLX4_CQ_DOORBELL});
  EXPECT_EQ(abi::uar::cq_arm_next, unsigned{MLX4_CQ_DB_REQ_NOT});
  EXPECT_EQ(abi::uar::cq_arm_solicited, unsigned{MLX4_CQ_DB_REQ_NOT_SOL});
}

}  // namespace rnic
