// SPDX-License-Identifier: Apache-2.0
// The driver shim: an adapter brought up over PCIe, and verbs on it.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

#include "host_driver/bitmap.h"
#include "host_driver/bus_if.h"
#include "host_driver/command_channel.h"
#include "host_driver/config.h"
#include "host_driver/event_queue.h"
#include "host_driver/gid_rules.h"
#include "host_driver/icm.h"
#include "host_driver/profile.h"
#include "host_driver/resources.h"
#include "host_driver/verbs_objects.h"
#include "host_driver/virtual_channel.h"
#include "model/abi/queue_entries.h"

struct mlx4dv_qp_init_attr;
namespace rnic::host_driver {
class flow_request;
}

namespace rnic::host_driver {

/// RoCE versions that an address gets GIDs for.
enum class roce_types : std::uint8_t { v1 = 1, v2 = 2, both = 3 };
inline constexpr std::uint16_t no_vlan = 0xffff;

/// A row of a port's GID table.
struct gid_row {
  gid_bytes id{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V1;
  std::uint16_t vlan = no_vlan;
  bool valid = false;
};

/// Whose registrations of a port's tables: the physical function's, or those of its virtual ones.
enum class table_user : std::uint8_t { own, functions };
/// How many registrations an entry has; an entry without any is the other port's, where ports are mirrored.
struct table_users {
  unsigned own = 0, functions = 0;
  unsigned all() const { return own + functions; }
};

/// QUERY_PORT of one port, and the tables that the driver keeps for it.
struct port_state {
  mac_address mac{};
  bool link_up = false;
  std::uint8_t speed = 0;  ///< code of abi::query_port
  unsigned max_mtu = 0, pkeys = 0, ib_width = 0;
  std::array<gid_row, 128> gids{};
  std::array<std::uint64_t, 128> macs{};   ///< valid bit 63
  std::array<std::uint32_t, 128> vlans{};  ///< valid bit 31
  std::array<table_users, 128> mac_users{}, vlan_users{};
  unsigned max_macs = 128, max_vlans = 128;           ///< entries that the port announces
  unsigned kept_macs = 0, kept_vlans = 0;             ///< of these the virtual functions'
  unsigned gid_rows = 128;                            ///< of `gids`, that are this function's
  unsigned mac_index = 0;                             ///< of `mac` in the port's table
  std::uint8_t counter = sink_counter;                ///< of its queue pairs
  static constexpr std::uint8_t sink_counter = 0xff;  ///< nobody's
};

/// What a port has counted since its counters were cleared (DUMP_ETH_STATS; adapter control plane 10.2). Pause times in
/// microseconds.
struct port_statistics {
  struct pause {
    std::uint64_t frames = 0, duration_us = 0, transitions = 0;
  };
  std::array<std::uint64_t, 9> rx_frames{}, rx_octets{}, tx_frames{}, tx_octets{};  ///< priorities 0 to 7, untagged
  std::array<pause, 8> rx_pause{}, tx_pause{};
  std::uint64_t rx_control = 0, rx_too_long = 0;
  std::uint32_t rx_crc = 0, rx_runt = 0, rx_dropped = 0, rx_overflow = 0, tx_dropped = 0;
};

/// What the queue pairs of a function's port have sent and received (QUERY_IF_STAT), without FCS.
struct traffic_statistics {
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
};

/// Names the spans of messages (model/sim/span.h) for tracing.
class span_source_if {
 public:
  /// Work requests that a call of post_send has written, and rings for.
  struct posted {
    const ibv_send_wr* first;
    std::uint32_t index, count;  ///< of the send queue's WQEs
    std::uint64_t called_ps;     ///< when the call began
  };
  virtual ~span_source_if() = default;
  /// Once for each doorbell of post_send: the span that it carries. 0: this one is not followed.
  virtual std::uint32_t span_for(const ibv_qp& qp, const posted& requests) = 0;
  /// poll_cq has a completion of a send queue: of WQE `last`, and of those before it from `first` on, which have none.
  virtual void polled(const ibv_qp&, std::uint32_t /*first*/, std::uint32_t /*last*/, const ibv_wc&) {}
};

/// Carries management datagrams between functions and the wire.
class mad_carrier_if {
 public:
  virtual ~mad_carrier_if() = default;
  /// The function's QP1 of this port is about to work. 0 or a negative errno.
  virtual int open_tunnel(unsigned function, unsigned port) = 0;
  /// It does no more: what comes for it is dropped.
  virtual void close_tunnel(unsigned function, unsigned port) = 0;
};

/// One function, a physical or a virtual one (by its device ID). Every call may take simulated time on the bus.
/// Functions that return int give 0 or a negative errno (poll_cq: the number of completions); functions that return a
/// pointer give nullptr and set errno. Verbs objects stay valid until destroyed or until the device's end.
///
/// Several processes may use one device, as threads of one program would; a queue pair or completion queue belongs to
/// one of them at a time.
class device : private event_pump_if {
 public:
  explicit device(bus_if& bus, const config& cfg = config{});
  ~device() override;
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  /// Configuration space to active ports, in the order of the real drivers (adapter control plane 3.1 - 3.3). On
  /// failure everything done so far is undone.
  int open();
  /// The unload sequence (3.4). Objects that were not destroyed are taken down first.
  int close();
  /// Resets the device in the middle of its work, as the driver does on a catastrophic error (adapter control plane
  /// 3.4; net/catas.c), then as abandon(). open() works again after it.
  int reset();
  /// Ends as close() does, without the device, which was reset by somebody else and knows nothing of us any more. All
  /// objects are gone; buffers stay.
  int abandon();
  bool is_open() const { return open_; }
  /// Of its configuration space, when open() was called.
  std::uint32_t device_id() const { return device_id_; }
  /// Whether it is that of a physical function which this driver is for.
  static bool knows(std::uint32_t device_id);
  /// The same of a virtual one.
  static bool knows_virtual(std::uint32_t device_id);

  // What the device said about itself.
  int query_device(ibv_device_attr* attr);
  int query_port(unsigned port, ibv_port_attr* attr);
  int query_gid(unsigned port, int index, ibv_gid* gid);
  int query_gid_type(unsigned port, int index, ibv_gid_type* type);
  int query_statistics(unsigned port, port_statistics* out);
  /// `clear`: the next one counts from here on.
  int query_traffic(unsigned port, traffic_statistics* out, bool clear = false);
  int query_pkey(unsigned port, int index, std::uint16_t* pkey);  ///< in network byte order, as ibv_query_pkey
  unsigned num_ports() const { return bonded_ ? 1 : caps_.num_ports; }
  const device_caps& caps() const { return caps_; }
  std::uint32_t cqe_bytes() const { return cqe_bytes_; }
  std::uint32_t eqe_bytes() const { return eqe_bytes_; }
  const firmware_info& firmware() const { return firmware_; }
  const icm_profile& profile() const { return profile_; }
  const std::array<char, 17>& board_id() const { return board_id_; }
  const port_state& port(unsigned port) const { return ports_[port - 1]; }
  unsigned core_clock_mhz() const { return core_clock_mhz_; }

  // Addresses.
  /// Gives the port an IP address (`ip`: ::ffff:a.b.c.d for IPv4): one GID for each type, version 1 first, in the first
  /// free rows; versions that config::roce_mode leaves out get none. Index of the first row, or a negative errno:
  /// EOPNOTSUPP when no version is left, ENOSPC when the function's rows are used up.
  int add_address(unsigned port, const gid_bytes& ip, roce_types types = roce_types::both,
                  std::uint16_t vlan = no_vlan);
  int remove_address(unsigned port, const gid_bytes& ip, std::uint16_t vlan = no_vlan);
  /// First row with this GID, type and VLAN, or -ENOENT.
  int find_gid(unsigned port, const gid_bytes& id, ibv_gid_type type, std::uint16_t vlan = no_vlan) const;
  /// Neighbour table: which MAC an address has. Link-local and multicast GIDs need no entry.
  void add_neighbour(const gid_bytes& gid, const mac_address& mac) { neighbours_[gid] = mac; }
  /// 0 and the MAC, or -EHOSTUNREACH.
  int resolve(const gid_bytes& gid, mac_address* mac) const;
  /// What the port's RC queue pairs have in place of their own traffic class and hop limit from their next address
  /// vector on (sysfs tc/PORT). `port`: 1, 2.
  forced_path& forced(unsigned port) { return cfg_.forced.at(port - 1); }
  const forced_path& forced(unsigned port) const { return cfg_.forced.at(port - 1); }

  // Memory.
  /// Memory that can be registered; lives until free_buffer or the device's end. Pointer nullptr when there is none.
  bus_if::dma_memory allocate_buffer(std::size_t bytes, std::size_t alignment = 4096);
  void free_buffer(const bus_if::dma_memory& memory);
  /// What is registered, and the queues of programs. ENOMEM of reg_mr, create_cq, resize_cq, create_qp and create_srq
  /// may mean that its limit is reached (config::memlock_bytes).
  const pinned_memory& pinned() const { return pinned_; }
  /// What is made while one lives is of the kernel (LLDP, LACP), whose memory no limit counts.
  class kernel_memory {
   public:
    explicit kernel_memory(device& of) : of_(of) { of_.for_kernel_ = true; }
    ~kernel_memory() { of_.for_kernel_ = false; }
    kernel_memory(const kernel_memory&) = delete;
    kernel_memory& operator=(const kernel_memory&) = delete;

   private:
    device& of_;
  };
  protection_domain* alloc_pd();
  int dealloc_pd(ibv_pd* pd);
  /// `addr`: within a buffer of allocate_buffer. Work requests address the region by its `iova`, which is the bus
  /// address of `addr`, or `iova` when given (equal to the bus address modulo the page size of the configuration).
  /// `key`: the key to have, EBUSY when its place in the table is taken.
  memory_region* reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access, const std::uint64_t* iova = nullptr,
                        const std::uint32_t* key = nullptr);
  int dereg_mr(ibv_mr* mr);

  // Memory windows and fast registration.
  memory_window* alloc_mw(ibv_pd* pd, ibv_mw_type type);
  int dealloc_mw(ibv_mw* mw);
  /// Posts a binding of a type 1 window, whose rkey is the new one from then on (ibv_bind_mw). Type 2 windows are bound
  /// by IBV_WR_BIND_MW, with a key that the program chooses.
  int bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind* bind);
  /// A region of up to `max_pages` pages without any, for fast_register_wr (the kernel's ib_alloc_mr).
  memory_region* alloc_fast_reg_mr(ibv_pd* pd, std::uint32_t max_pages);
  /// Pages of 2^log_page bytes by bus address that the next fast registration maps from `iova` on (ib_map_mr_sg).
  int set_fast_reg_pages(memory_region* mr, const std::uint64_t* pages, std::uint32_t count, unsigned log_page,
                         std::uint64_t iova, std::uint64_t length);

  // Completion queues.
  completion_queue* create_cq(int cqe, unsigned vector = 0);
  int destroy_cq(ibv_cq* cq);
  /// A buffer for `cqe` completions in place of the present one; those that nobody has polled yet are in it. EINVAL:
  /// they are more.
  int resize_cq(ibv_cq* cq, int cqe);
  /// `plain`: as many places as `wc` has, for what completions of raw packet queue pairs say more.
  int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc, ethernet_receive* plain = nullptr);
  /// Link-layer address of the sender of the datagram whose completion was the last one polled, which the kernel's work
  /// completions have (smac) and those of verbs have not.
  mac_address last_source(const completion_queue& cq) const;
  int req_notify_cq(ibv_cq* cq, int solicited_only);
  int modify_cq(ibv_cq* cq, std::uint16_t count, std::uint16_t period_us);  ///< moderation
  /// Polls until there is a completion (returns as poll_cq), or gives 0 after `timeout_ps` (0: no limit).
  int wait_cq(ibv_cq* cq, int num_entries, ibv_wc* wc, std::uint64_t timeout_ps = 0, ethernet_receive* plain = nullptr);
  /// Ends the waits of wait_cq for this queue that have begun, as if their time were over.
  void end_wait(ibv_cq* cq);
  /// Sleeps until a completion event of this vector: the queue, or nullptr after `timeout_ps` (0: no limit).
  completion_queue* get_cq_event(unsigned vector, std::uint64_t timeout_ps = 0);
  /// False after `timeout_ps` (0: no limit). CQ, QP and SRQ are objects of this device.
  bool get_async_event(ibv_async_event* event, std::uint64_t timeout_ps = 0);

  // Queue pairs.
  /// `qpn`: this number and no other (24 bits; EBUSY when its place in the table is taken).
  queue_pair* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr, const std::uint32_t* qpn = nullptr);
  /// `remote_mac`: link-layer address of attr->ah_attr when the neighbour table is not to be asked.
  int modify_qp(ibv_qp* qp, const ibv_qp_attr* attr, int mask, const mac_address* remote_mac = nullptr);
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
  /// What the queue pair sends at most, in Mb/s; 0: no limit of its own. As the kernel does for an Ethernet queue
  /// (mlx4_en_set_tx_maxrate): from 4096 Mb/s on in whole Gb/s. EOPNOTSUPP when the device has no such limits.
  int set_max_rate(ibv_qp* qp, std::uint32_t mbps);
  int destroy_qp(ibv_qp* qp);
  int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
  int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
  /// QP1 of a port: receives its management datagrams, 40 bytes of GRH area and 256 of data each, and sends them with
  /// post_send (IBV_WR_SEND to an address handle of this port; up to 256 bytes; Q_Key with bit 31: that of QP1). It is
  /// in state RTS and stays there. EBUSY: there is one. As the kernel's, it has a queue pair of its own to send RoCE
  /// v2, whose number is what a peer sees as the source, and which work completions of sending name.
  ///
  /// Where there are virtual functions each function has a proxy instead, the physical one too: its datagrams go to the
  /// physical function's driver and from there to the wire, and back (functions/mad_tunnel.h). Those of the
  /// communication manager get through, 256 bytes each. EOPNOTSUPP: the function has no RoCE.
  queue_pair* create_gsi(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port);
  address_handle* create_ah(ibv_pd* pd, const ibv_ah_attr* attr, const mac_address* remote_mac = nullptr);
  int destroy_ah(ibv_ah* ah);
  /// Datagrams to `gid` come to the queue pair; `block_loopback`: but not those of this port. Steering by the device:
  /// those that come in by the queue pair's port, which must be known.
  int attach_mcast(ibv_qp* qp, const ibv_gid* gid, bool block_loopback = false);
  int detach_mcast(ibv_qp* qp, const ibv_gid* gid);

  // Raw packet queue pairs (IBV_QPT_RAW_PACKET): plain frames. What they receive is said by rules.
  /// `qp`: one that receives or one that spreads. B0: rules for one destination address, for all addresses that have no
  /// rule, and for all groups that have none; EOPNOTSUPP for others. Steering by the device: all that mlx4_ib takes:
  /// Ethernet, IPv4, TCP and UDP headers with masks, priorities 0 to 4095 (0 is the highest) above those of network
  /// interfaces, default rules, and with IBV_FLOW_ATTR_FLAGS_DONT_TRAP copies of all unicast or group frames. Frames
  /// that this port has sent itself do not come back by such rules. ENOMEM: the table is full. EBUSY: the queue pair
  /// has that rule.
  steering_flow* create_flow(ibv_qp* qp, const ibv_flow_attr* attr);
  /// How it is done: config::steering, unless the device has no rules.
  config::steering_mode steering() const { return steering_; }
  /// The rule for one destination address, as a network interface has it (net/en_netdev.c: mlx4_en_uc_steer_add): with
  /// steering by the device, below all others, and for own frames too.
  steering_flow* create_flow(ibv_qp* qp, unsigned port, const mac_address& to);
  int destroy_flow(ibv_flow* flow);
  /// A queue pair in RTS that hands what it is steered on to others.
  queue_pair* create_rss_qp(ibv_pd* pd, const spreading& how);
  /// VLANs of which the port takes frames (mlx4_SET_VLAN_FLTR): all, or those added. Untagged frames always pass.
  int filter_vlans(unsigned port, const std::vector<std::uint16_t>& vids);
  /// Group addresses that the port takes (mlx4_SET_MCAST_FLTR); all without `on`. Broadcast is one of them.
  int filter_groups(unsigned port, bool on, const std::vector<mac_address>& groups = {});

  // Shared receive queues.
  shared_receive_queue* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
  int modify_srq(ibv_srq* srq, const ibv_srq_attr* attr, int mask);  ///< IBV_SRQ_LIMIT only
  int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
  int destroy_srq(ibv_srq* srq);
  // XRC (IBA annex A14): queue pairs of type IBV_QPT_XRC_SEND (in attr->pd) send to those of type IBV_QPT_XRC_RECV (in
  // attr->xrcd, without queues of their own), naming a shared receive queue of type IBV_SRQT_XRC in the latter's domain
  // by its number (ibv_send_wr::qp_type.xrc.remote_srqn is shared_receive_queue::srqn).
  xrc_domain* open_xrcd();
  int close_xrcd(ibv_xrcd* xrcd);
  /// `wanted`: the number to have; EBUSY when it is in use, EINVAL when it is beyond the table.
  shared_receive_queue* create_srq_ex(ibv_srq_init_attr_ex* attr, const std::uint32_t* wanted = nullptr);
  /// `direct`, as for mlx4dv_create_qp: bytes of a message that stay in the receive request, up to what the largest
  /// list of buffers takes; becomes the size it got. EINVAL without a receive queue of its own. See wc_inline_receive.
  /// `wanted`: the number to have, as for create_qp.
  queue_pair* create_qp_ex(ibv_qp_init_attr_ex* attr, mlx4dv_qp_init_attr* direct = nullptr,
                           const std::uint32_t* wanted = nullptr);
  int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

  // Virtual functions, for the driver that serves them (functions/master.h): a physical function with
  // config::virtual_functions has enabled as many.
  /// A command has been written to the channel (bits of `functions`), a function was reset, an object of it has an
  /// event (`entry`), or a port, which is all functions' (`entry`).
  struct function_event {
    enum class kind : std::uint8_t { channel, reset, of_object, port } what = kind::channel;
    std::uint16_t function = 0;
    std::array<std::uint32_t, 4> functions{};
    std::array<std::uint8_t, abi::eqe::bytes> entry{};
  };
  /// Sleeps until there is one. False: the device is being closed.
  bool wait_function_event(function_event* event);
  bool is_virtual() const { return virtual_; }
  /// Enabled ones.
  unsigned virtual_functions() const { return enabled_functions_; }
  icm_resources& tables() { return tables_; }
  /// Bus address of the first one's BAR2, and the size of each.
  std::uint64_t function_bar() const { return function_bar_; }
  std::uint64_t function_bar_bytes() const { return function_bar_bytes_; }
  /// Device ID of the virtual functions.
  std::uint32_t function_device_id() const { return function_device_id_; }
  /// Rows `first` and following of a port's table become `rows`. -EINVAL: one of them is another function's (GID, type
  /// and VLAN); nothing has changed then.
  int change_gids(unsigned port, unsigned first, const std::vector<gid_row>& rows);
  /// Entry of a MAC address (48 bits) in a port's table, or a negative errno. One that is there is counted once more,
  /// also in a full table, and stays until all of its registrations are given back. ENOSPC: the port's entries
  /// (QUERY_PORT) are in use, or what is left of them is the virtual functions'. Entry 0 has the port's own address.
  int add_mac(unsigned port, std::uint64_t mac, table_user who = table_user::own);
  /// -EINVAL: `who` has no registration of this entry.
  int remove_mac(unsigned port, unsigned index, table_user who = table_user::own);
  /// The same of VLANs; entries 0 and 1 are the hardware's. A virtual function asks the physical one's driver for the
  /// first registration of a VLAN and gives it back with the last one. (The kernel's asks each time.) EDQUOT: functions
  /// have all that keep_entries() left them, and what the table still has is the physical one's.
  int add_vlan(unsigned port, std::uint16_t vid, table_user who = table_user::own);
  int remove_vlan(unsigned port, unsigned index, table_user who = table_user::own);
  /// So many entries of the port's tables are not for table_user::own; of VLANs the functions have no more.
  void keep_entries(unsigned port, unsigned macs, unsigned vlans);
  int attach_member(const ibv_gid& gid, std::uint32_t member, std::uint32_t protocol);
  int detach_member(const ibv_gid& gid, std::uint32_t qpn, std::uint32_t protocol);
  /// Who opens the tunnels behind proxies; outlives the device's work.
  void set_mad_carrier(mad_carrier_if* carrier) { carrier_ = carrier; }
  /// QP1 of the wire, whose requests may name the reserved key and have addresses of functions (address_handle::source,
  /// any row of the port's GID table); and the other end of a function's QP1, a datagram queue pair.
  queue_pair* create_wire_gsi(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port,
                              paravirtual_role role = paravirtual_role::wire);
  queue_pair* create_tunnel(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned function, unsigned port);
  /// Tag of the datagram whose completion was the last one polled, as last_source(); 0xffff: it had none.
  std::uint16_t last_tag(const completion_queue& cq) const;

  // High availability of virtual functions with one port each (bond.h): the device keeps its two ports.
  /// CONFIG_DEV; the tables of MAC addresses and VLANs of both ports become one, port 2 has the address of port 1 (and
  /// goes on taking what is for its own), and rules are on both ports. Objects stay as they are. -EINVAL: they are
  /// mirrored, cannot be, or have different things at one place of a table; -ENOMEM: there is no room for the rules'
  /// twins. Nothing has changed then.
  int mirror_ports();
  /// Its end (net/main.c: mlx4_unbond): each virtual port is its own port, which has its address, and in its tables and
  /// rules what was registered for it, before or meanwhile. Objects stay as they are. -EINVAL: they are not mirrored.
  int unmirror_ports();
  bool mirrors_ports() const { return mirrored_; }

  // Both ports as one, for who follows their links (bond.h). Port 1 is the device's only one then.
  /// CONFIG_DEV, and the tables of port 2 as those of port 1. `own_addresses`: but each port sends with its own MAC,
  /// and half of the GID table is for copies. -EBUSY: programs have objects (has_programs_objects). Lasts until
  /// leave_bond(), or until the device is closed.
  int enter_bond(bool own_addresses);
  /// Both ports are devices' ports again (net/main.c: mlx4_unbond, without virtual functions): each virtual port is its
  /// own port, packets come in by that alone, port 2 has the address and the tables of before. Port 1 keeps what the
  /// one port of the bond had. -EINVAL: it is not bonded; -EBUSY as above.
  int leave_bond();
  /// Queue pairs but those that stay at their port below a bond, as network interfaces' do, and address handles: the
  /// kernel takes the RDMA device away from its users when a bond begins or ends (net/intf.c: mlx4_do_bond).
  bool has_programs_objects() const;
  bool is_bonded() const { return bonded_; }
  /// Ports that the virtual ones stand for from now on: VIRT_PORT_MAP.
  int set_port_map(unsigned port_1, unsigned port_2);
  /// Ports with a link: bit n is port n + 1.
  unsigned links() const;
  /// Sleeps until they are not `known` any more. False: the device is being closed, or `ended` says so, which is asked
  /// when a link or end_link_waits() wakes it.
  bool wait_links(unsigned known, const std::function<bool()>& ended = {});
  void end_link_waits();

  void set_span_source(span_source_if* source) { spans_ = source; }
  /// For tests and tools: any firmware command.
  command_channel& commands() { return channel_; }
  const config& settings() const { return cfg_; }
  bool has_blue_flame() const { return bf_bytes_ != 0; }

 private:
  // bring_up.cpp
  int bring_up();
  int run_steps(std::initializer_list<int (device::*)()> steps);
  int take_function();
  int assign_bars();
  int take_ownership();
  int reset_device();
  int start_firmware();
  int query_capabilities();
  int init_icm();
  int init_hca();
  void fill_steering(std::uint8_t* mailbox) const;
  int read_adapter();
  void init_allocators();
  int create_eq(event_queue& eq, unsigned vector, unsigned log_entries);
  int init_event_queues();
  int switch_to_events();
  int init_special_qps();
  void destroy_event_queues();
  void clean_up_icm();
  // sriov.cpp, virtual_function.cpp
  int enable_functions();
  int query_function_eqs();
  void disable_functions();
  int open_channel();
  int ask_capabilities();
  int ask_function_capabilities();
  int start_virtual_ports();
  int close_virtual();
  // ports.cpp
  int read_port(unsigned port);
  int query_extended_speed(unsigned port, ibv_port_attr* attr);
  int mad(unsigned port, std::uint16_t attribute, std::uint32_t modifier, std::uint8_t* response);
  int set_port_general(unsigned port);
  int set_port_user_mtu(unsigned port);
  int init_port(unsigned port);
  // A table of a port; bonded, that of both.
  int write_mac_table(unsigned port);
  int write_vlan_table(unsigned port);
  int write_gid_table(unsigned port);
  // port_tables.cpp
  int ask_for_vlan(unsigned port, std::uint16_t vid);
  // high_availability.cpp
  bool may_mirror() const;
  const port_state* pair_of(unsigned port) const { return may_mirror() ? &ports_[2 - port] : nullptr; }
  int check_arrival_ports(bool on);
  int mirror_tables();
  int unmirror_tables();
  int write_both_tables();
  int mirror_rules();
  bool has_port(unsigned port) const { return port != 0 && port <= num_ports(); }
  int write_port_macs(unsigned port);
  int write_port_gids(unsigned port);
  int write_port_vlans(unsigned port);
  void choose_virtual_port(queue_pair& qp);
  int write_joined_tables();
  int write_parted_tables();
  int start_network_ports();
  int start_rdma_ports();
  int activate_ports();
  int query_core_clock();
  // memory.cpp
  int allocate_mtt(const std::uint64_t* pages, std::uint32_t count, mtt_range& range);
  int map_buffer(std::uint64_t first, std::size_t bytes, unsigned log_page, mtt_range& range);
  int map_user_buffer(std::uint64_t first, std::size_t bytes, unsigned log_page, mtt_range& range);
  void free_mtt(mtt_range& range);
  doorbell_record allocate_record();
  void free_record(const doorbell_record& record);
  void give_back_queue(const bus_if::dma_memory& buffer, const doorbell_record& record);
  bool bus_address_of(const void* pointer, std::size_t bytes, std::uint64_t* address) const;
  const void* inline_source(std::uint64_t address, std::size_t bytes) const;
  const void* buffer_at(std::uint64_t address, std::size_t bytes) const;
  int create_dma_mr();
  // windows.cpp
  int take_mpt(std::uint32_t* index);
  void put_mpt(std::uint32_t index);
  // completion.cpp
  void pump(std::uint64_t timeout_ps) override;
  bool wait_interrupt(unsigned vector, std::uint64_t timeout_ps);
  void serve_line();
  bool drain_async();
  void handle_async(const std::uint8_t* event);
  bool drain_completions(unsigned vector);
  void push_event(ibv_event_type type, std::uint32_t number);
  bool ready(const completion_queue& cq) const;
  int parse_cqe(completion_queue& cq, ibv_wc& wc, ethernet_receive* plain);
  void purge_cq(completion_queue& cq, const std::function<bool(const std::uint8_t*)>& gone,
                shared_receive_queue* shared);
  void purge_completions(queue_pair& qp);
  void forget_events(const std::function<bool(const ibv_async_event&)>& gone);
  queue_pair* completed_qp(completion_queue& cq, std::uint32_t qpn, bool is_send) const;
  queue_pair* find_qp(std::uint32_t qpn) const;
  bool receives_xrc(std::uint32_t qpn) const;
  void remember_qp(std::uint32_t qpn, queue_pair* qp);
  // multicast.cpp
  struct group_place {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::uint32_t index = 0, previous = none;
    bool found = false;
    bool unused = false;  ///< head of the bucket without a group
  };
  int ask_for_group(const queue_pair& qp, const ibv_gid& gid, bool attach, bool block_loopback);
  int find_group(const ibv_gid& gid, command_channel::mailbox& box, group_place* at, std::uint32_t protocol);
  std::uint32_t group_room() const;
  // ethernet.cpp
  struct ethernet_group {
    ibv_gid gid{};
    std::vector<std::uint32_t> qpns;  ///< attached by rules of their own
  };
  struct ethernet_table {  ///< of a port, for one kind of address
    std::vector<ethernet_group> groups;
    std::vector<std::uint32_t> promiscuous;
  };
  steering_flow* create_group_flow(queue_pair* qp, const ibv_flow_attr* attr);  // B0
  int remove_group_flow(const steering_flow& flow);
  // managed_flows.cpp: DMFS
  bool by_device() const { return steering_ == config::steering_mode::device_managed; }
  void choose_steering();
  steering_flow* create_managed_flow(queue_pair* qp, const ibv_flow_attr* attr);
  int attach_rules(unsigned port, const std::function<int(unsigned port, flow_request& to)>& fill,
                   std::vector<std::uint64_t>* ids);
  int detach_rules(const std::vector<std::uint64_t>& ids);
  int attach_group_rule(queue_pair& qp, const ibv_gid& gid, bool block_loopback);
  int detach_group_rule(const queue_pair& qp, const ibv_gid& gid);
  struct group_rule {
    const queue_pair* qp = nullptr;
    ibv_gid gid{};
    std::vector<std::uint64_t> rules;
  };
  int attach_address(unsigned port, const mac_address& mac, std::uint32_t qpn);
  int detach_address(unsigned port, const mac_address& mac, std::uint32_t qpn);
  int set_promiscuous(unsigned port, unsigned kind, std::uint32_t qpn, bool on);
  int write_default_entry(unsigned port, unsigned kind);
  void drop_flows(const queue_pair& qp);
  bool has_datagram_version(const ibv_send_wr& wr) const;
  void put_raw_control(const ibv_send_wr& wr, std::uint32_t* flags, std::uint32_t* immediate, std::uint32_t* tag) const;
  void fill_raw_path(const queue_pair& qp, std::uint8_t* path) const;
  // queue_pair.cpp, qp_transition.cpp, shared_queue.cpp
  shared_receive_queue* make_srq(ibv_pd* pd, ibv_srq_init_attr* attr, xrc_domain* domain, completion_queue* cq,
                                 const std::uint32_t* wanted = nullptr);
  queue_pair* make_qp(ibv_pd* pd, ibv_qp_init_attr* attr, const std::uint32_t* wanted, xrc_domain* xrc = nullptr,
                      std::uint32_t* inline_receive = nullptr);
  bool is_special_qpn(std::uint32_t qpn) const { return !virtual_ && qpn - tables_.base_special_qpn() < 8; }
  int size_queues(queue_pair& qp, ibv_qp_init_attr& attr, std::uint32_t* inline_receive) const;
  void init_send_ring(queue_pair& qp) const;
  int fill_path(queue_pair& qp, const ibv_ah_attr& ah, const mac_address* remote_mac, std::uint8_t* path,
                bool* roce_v2);
  void settle_vlan(queue_pair& qp, bool moved);
  void force_path(const ibv_ah_attr& ah, unsigned port, std::uint8_t* path) const;
  int fill_context(queue_pair& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state to, const mac_address* remote_mac,
                   std::uint8_t* mailbox);
  void fill_init_fields(queue_pair& qp, std::uint8_t* context) const;
  int check_limits(const queue_pair& qp, const ibv_qp_attr& attr, int mask) const;
  int move_qp(queue_pair& qp, ibv_qp_state to, const command_channel::mailbox* box, bool notify);
  // special_queue_pair.cpp
  std::size_t build_mad_headers(const queue_pair& qp, const queue_pair& sender, const ibv_send_wr& wr,
                                std::uint32_t payload, std::uint8_t* out) const;
  int post_mads(queue_pair& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
  int post_mad(queue_pair& qp, const ibv_send_wr& wr);
  int start_special_qp(queue_pair& qp, bool roce_v2);
  // proxy_queue_pair.cpp
  int ask_proxy(unsigned port, std::uint32_t* proxy, std::uint32_t* tunnel);
  queue_pair* create_proxy(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port);
  int start_paravirtual_qp(queue_pair& qp, std::uint32_t qkey);
  int post_to_tunnel(queue_pair& qp, const ibv_send_wr& wr);
  void put_tunnel_segment(const queue_pair& qp, std::uint32_t index, std::uint8_t* segment) const;
  static void take_tunnel_header(const queue_pair& qp, ibv_wc& wc);
  static void stamp_send_entry(queue_pair& qp, std::uint32_t index);
  void release_srq_entry(shared_receive_queue& srq, std::uint32_t index);
  void take_down_objects();

  bus_if& bus_;
  config cfg_;
  command_channel channel_;
  virtual_channel to_physical_{bus_, cfg_};  // of a virtual function
  bool virtual_ = false;
  bool open_ = false;
  bool owner_ = false, hca_ = false, aux_ = false, fw_ = false, special_qps_ = false;

  firmware_info firmware_;
  device_caps caps_;
  icm_profile profile_;
  std::array<char, 17> board_id_{};
  unsigned core_clock_mhz_ = 0;
  std::uint64_t node_guid_ = 0, system_guid_ = 0;
  std::uint32_t revision_ = 0, device_id_ = 0, identity_ = 0;
  std::vector<port_state> ports_;
  bool bonded_ = false, own_addresses_ = false, mirrored_ = false;
  unsigned next_virtual_port_ = 0;
  std::vector<port_state> before_bond_;  // while it is bonded
  std::map<gid_bytes, mac_address> neighbours_;

  icm_area firmware_area_, aux_area_;
  icm_resources tables_;             // of a physical function
  asked_resources asked_{channel_};  // of a virtual one
  resources_if* resources_ = &tables_;
  bitmap pdns_;
  std::uint32_t num_qps_ = 0, num_mpts_ = 0;

  std::uint32_t uar_ = 0;  ///< the page of all our doorbells
  std::uint64_t uar_offset_ = 0, bf_offset_ = 0;
  std::uint32_t bf_bytes_ = 0;  ///< half of a BlueFlame register; 0: none
  std::uint32_t bf_half_ = 0;   ///< which half is next: 0 or bf_bytes_
  config::blue_flame_rule blue_flame_ = config::blue_flame_rule::with_inline_data;  ///< never by_device

  event_queue async_eq_;
  std::vector<event_queue> completion_eqs_;
  std::vector<bool> vector_armed_;
  unsigned inta_pin_ = 0;  ///< bit of CLR_INT
  std::uint32_t eqe_bytes_ = 32, cqe_bytes_ = 32;
  std::deque<ibv_async_event> async_events_;
  std::deque<function_event> function_events_;
  unsigned enabled_functions_ = 0;
  std::uint64_t function_bar_ = 0, function_bar_bytes_ = 0;
  std::uint16_t function_device_id_ = 0;
  std::vector<std::deque<completion_queue*>> cq_events_;

  std::map<const std::uint8_t*, bus_if::dma_memory> buffers_;       // by pointer
  std::map<std::uint64_t, bus_if::dma_memory> buffers_by_address_;  // by bus address
  mutable bus_if::dma_memory last_buffer_{};
  pinned_memory pinned_{cfg_.memlock_bytes};
  bool for_kernel_ = false;  // what is made is not to be pinned
  std::vector<doorbell_record> free_records_;
  std::vector<bus_if::dma_memory> record_pages_;
  std::vector<std::uint8_t> bf_image_;

  std::vector<std::unique_ptr<protection_domain>> pds_;
  std::vector<std::unique_ptr<memory_region>> mrs_;
  std::vector<std::unique_ptr<memory_window>> mws_;
  std::vector<std::unique_ptr<completion_queue>> cqs_;  // by CQN
  std::vector<std::unique_ptr<shared_receive_queue>> srqs_;
  std::vector<std::unique_ptr<xrc_domain>> xrcds_;
  std::vector<std::unique_ptr<address_handle>> ahs_;
  std::vector<std::unique_ptr<steering_flow>> flows_;
  std::array<std::array<ethernet_table, 2>, 2> ethernet_tables_;  // by port and kind
  config::steering_mode steering_ = config::steering_mode::b0;
  std::vector<group_rule> group_rules_;  // DMFS: in place of the table
  struct own_rule {
    std::vector<std::uint8_t> mailbox;  ///< as it was attached
    std::uint64_t mirror = 0;           ///< registration of its twin on the other port; 0: none
  };
  int mirror_rule(own_rule& rule);
  struct second_address {  ///< of port 2, which has that of port 1 while they are mirrored
    mac_address mac{};
    std::uint64_t entry = 0;  ///< 0: there is nothing to be undone
    std::size_t place = 0;    ///< where both tables have it meanwhile; 0: it is port 1's
  };
  second_address second_;
  std::map<std::uint64_t, own_rule> own_rules_;  // DMFS, where ports may be mirrored; by registration
  std::vector<bool> group_used_;                 // entries of the multicast group table behind the buckets
  static constexpr std::uint32_t qps_per_group = 256;
  using qp_group = std::array<queue_pair*, qps_per_group>;
  std::vector<std::unique_ptr<qp_group>> qp_index_;
  std::map<std::uint32_t, std::unique_ptr<queue_pair>> qps_;
  std::unique_ptr<memory_region> dma_mr_;
  std::uint32_t dma_pdn_ = 0;
  span_source_if* spans_ = nullptr;
  mad_carrier_if* carrier_ = nullptr;
};

}  // namespace rnic::host_driver
