// SPDX-License-Identifier: Apache-2.0
// The look-up of sources with one bug of choice, to see that the lockstep bench finds it.

module gid_source_planted (
  input  logic         clk_i,
  input  logic         rst_ni,

  // 0 none, 1 the version is not looked at, 2 everybody's entries, 3 wrong bit of the MAC, 4 no frame comes back,
  // 5 VIDs that are not valid
  input  logic [2:0]   bug_i,

  input  logic         valid_i,
  output logic         ready_o,
  input  logic         checked_i,
  input  logic         any_version_i,
  input  logic         v2_i,
  input  logic         ipv4_i,
  input  logic         tagged_i,
  input  logic [6:0]   index_i,
  input  logic [6:0]   mac_index_i,
  input  logic [6:0]   vlan_index_i,
  input  logic [15:0]  function_i,
  input  logic [47:0]  dmac_i,

  input  logic         write_i,
  input  logic [1:0]   write_table_i,
  input  logic [6:0]   write_index_i,
  input  logic         write_valid_i,
  input  logic [127:0] write_data_i,
  input  logic         write_v2_i,
  input  logic [6:0]   write_function_i,
  input  logic         write_shared_i,

  output logic         result_valid_o,
  output logic [2:0]   why_o,
  output logic         v2_o,
  output logic         own_o,
  output logic         vlan_valid_o,
  output logic [11:0]  vlan_o,
  output logic [127:0] id_o,
  output logic [47:0]  mac_o
);

  logic        own;
  logic [47:0] mac;

  assign own_o = own && bug_i != 3'd4;
  assign mac_o = bug_i == 3'd3 ? mac ^ 48'h0100_0000_0000 : mac;

  gid_source u_source (
    .clk_i, .rst_ni, .valid_i, .ready_o, .checked_i, .any_version_i(any_version_i || bug_i == 3'd1), .v2_i, .ipv4_i,
    .tagged_i, .index_i, .mac_index_i, .vlan_index_i, .function_i, .dmac_i,
    .write_i, .write_table_i, .write_index_i,
    .write_valid_i(write_valid_i || (bug_i == 3'd5 && write_table_i == 2'd2)), .write_data_i, .write_v2_i,
    .write_function_i, .write_shared_i(write_shared_i || bug_i == 3'd2),
    .result_valid_o, .why_o, .v2_o, .own_o(own), .vlan_valid_o, .vlan_o, .id_o, .mac_o(mac)
  );

endmodule
