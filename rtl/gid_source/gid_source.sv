// SPDX-License-Identifier: Apache-2.0
// Source of a packet that leaves: an entry each of a port's GID, MAC and VLAN tables, and whether
// the packet may have it.
//
// Stream contract (rtl/README.md) at the look-ups, of which one is taken in each cycle; results are not held up. The
// result of a look-up is valid two cycles after it was taken:
//
//   cycle      n         n+1                        n+2
//   look-up    taken     rows and matches read, _r   checked, _q
//
// A row that is written in cycle n is found by look-ups from n + 1 on. All outputs come from registers.

module gid_source #(
  parameter int unsigned Entries = 128
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // Look-up
  input  logic         valid_i,
  output logic         ready_o,
  input  logic         checked_i,      // the entry must be one that the packet may leave with
  input  logic         any_version_i,  // of a datagram
  input  logic         v2_i,           // RoCE v2
  input  logic         ipv4_i,         // destination GID
  input  logic         tagged_i,       // VID wanted
  input  logic [6:0]   index_i,
  input  logic [6:0]   mac_index_i,
  input  logic [6:0]   vlan_index_i,
  input  logic [15:0]  function_i,
  input  logic [47:0]  dmac_i,         // byte 0 in [7:0], as all addresses

  // Firmware's port: a row of one table
  input  logic         write_i,
  input  logic [1:0]   write_table_i,  // 0 GID, 1 MAC, 2 VID
  input  logic [6:0]   write_index_i,
  input  logic         write_valid_i,
  input  logic [127:0] write_data_i,   // GID; MAC in [47:0]; VID in [11:0]
  input  logic         write_v2_i,
  input  logic [6:0]   write_function_i,
  input  logic         write_shared_i, // no virtual functions: it is everybody's

  // Result
  output logic         result_valid_o,
  output logic [2:0]   why_o,          // 0 none, 1 invalid, 2 version, 3 function, 4 family
  output logic         v2_o,
  output logic         own_o,
  output logic         vlan_valid_o,
  output logic [11:0]  vlan_o,
  output logic [127:0] id_o,
  output logic [47:0]  mac_o
);

  typedef enum logic [1:0] { TableGid = 2'd0, TableMac = 2'd1, TableVid = 2'd2 } table_e;
  typedef enum logic [2:0] { WhyNone, WhyInvalid, WhyVersion, WhyFunction, WhyFamily } why_e;

  logic [Entries-1:0]        gid_valid_q, v2_q, shared_q, mac_valid_q, vid_valid_q;
  logic [Entries-1:0][6:0]   function_q;
  logic [Entries-1:0][127:0] id_q;
  logic [Entries-1:0][47:0]  mac_q;
  logic [Entries-1:0][11:0]  vid_q;

  // Stage 1: what was read, and what it was read for
  logic               valid_r, checked_r, any_version_r, want_v2_r, ipv4_r;
  logic               row_valid_r, row_v2_r, row_shared_r, vlan_valid_r;
  logic [6:0]         row_function_r;
  logic [15:0]        function_r;
  logic [127:0]       id_r;
  logic [47:0]        mac_r;
  logic [11:0]        vlan_r;
  logic [Entries-1:0] own_d, own_r;
  // Stage 2: the result
  logic               result_valid_q, result_v2_q, own_q, vlan_valid_q;
  logic [11:0]        vlan_q;
  logic [127:0]       result_id_q;
  logic [47:0]        result_mac_q;
  why_e               why_d, why_q;
  logic               is_ipv4;

  assign ready_o = 1'b1;

  // A group's frames go out as well.
  always_comb begin
    for (int unsigned i = 0; i < Entries; i++) begin
      own_d[i] = mac_valid_q[i] && mac_q[i] == dmac_i && !dmac_i[0];
    end
  end

  // ::ffff:a.b.c.d
  assign is_ipv4 = id_r[79:0] == '0 && id_r[95:80] == 16'hffff;

  always_comb begin
    why_d = WhyNone;
    if (checked_r) begin
      if (!row_valid_r) why_d = WhyInvalid;
      else if (!any_version_r && row_v2_r != want_v2_r) why_d = WhyVersion;
      else if (!row_shared_r && {9'd0, row_function_r} != function_r) why_d = WhyFunction;
      else if (row_v2_r && is_ipv4 != ipv4_r) why_d = WhyFamily;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      gid_valid_q    <= '0;
      mac_valid_q    <= '0;
      vid_valid_q    <= '0;
      mac_q          <= '0;
      valid_r        <= 1'b0;
      result_valid_q <= 1'b0;
    end else begin
      if (write_i && write_table_i == TableGid) gid_valid_q[write_index_i] <= write_valid_i;
      if (write_i && write_table_i == TableMac) begin
        mac_valid_q[write_index_i] <= write_valid_i;
        mac_q[write_index_i]       <= write_data_i[47:0];
      end
      if (write_i && write_table_i == TableVid) vid_valid_q[write_index_i] <= write_valid_i;
      valid_r        <= valid_i;
      result_valid_q <= valid_r;
    end
  end

  // Without reset: what is not valid does not matter.
  always_ff @(posedge clk_i) begin
    if (write_i && write_table_i == TableGid) begin
      id_q[write_index_i]       <= write_data_i;
      v2_q[write_index_i]       <= write_v2_i;
      function_q[write_index_i] <= write_function_i;
      shared_q[write_index_i]   <= write_shared_i;
    end
    if (write_i && write_table_i == TableVid) vid_q[write_index_i] <= write_data_i[11:0];

    if (valid_i) begin
      checked_r      <= checked_i;
      any_version_r  <= any_version_i;
      want_v2_r      <= v2_i;
      ipv4_r         <= ipv4_i;
      function_r     <= function_i;
      row_valid_r    <= gid_valid_q[index_i];
      row_v2_r       <= v2_q[index_i];
      row_function_r <= function_q[index_i];
      row_shared_r   <= shared_q[index_i];
      id_r           <= id_q[index_i];
      mac_r          <= mac_q[mac_index_i];
      vlan_valid_r   <= tagged_i && vid_valid_q[vlan_index_i];
      vlan_r         <= vid_q[vlan_index_i];
      own_r          <= own_d;
    end

    why_q        <= why_d;
    result_v2_q  <= checked_r && row_v2_r;
    result_id_q  <= checked_r ? id_r : '0;
    result_mac_q <= mac_r;
    own_q        <= own_r != '0;
    vlan_valid_q <= vlan_valid_r;
    vlan_q       <= vlan_valid_r ? vlan_r : '0;
  end

  assign result_valid_o = result_valid_q;
  assign why_o          = why_q;
  assign v2_o           = result_v2_q;
  assign own_o          = own_q;
  assign vlan_valid_o   = vlan_valid_q;
  assign vlan_o         = vlan_q;
  assign id_o           = result_id_q;
  assign mac_o          = result_mac_q;

endmodule
