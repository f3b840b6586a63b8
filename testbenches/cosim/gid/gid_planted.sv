// SPDX-License-Identifier: Apache-2.0
// The GID match with one bug of choice, to see that the lockstep bench finds it.

module gid_planted (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [1:0]   bug_i,  // 0 none, 1 last byte not compared, 2 the version is not looked at, 3 wrong bit of the index

  input  logic         valid_i,
  output logic         ready_o,
  input  logic [127:0] dgid_i,
  input  logic         v2_i,

  input  logic         write_i,
  input  logic [6:0]   write_index_i,
  input  logic [127:0] write_id_i,
  input  logic         write_v2_i,
  input  logic         write_valid_i,

  output logic         result_valid_o,
  output logic         hit_o,
  output logic [6:0]   index_o
);

  logic       plain_ready, short_ready, plain_valid, short_valid, plain_hit, short_hit, same_version;
  logic [6:0] plain_index, short_index;

  assign same_version   = bug_i == 2'd2;
  assign ready_o        = bug_i == 2'd1 ? short_ready : plain_ready;
  assign result_valid_o = bug_i == 2'd1 ? short_valid : plain_valid;
  assign hit_o          = bug_i == 2'd1 ? short_hit : plain_hit;
  assign index_o        = bug_i == 2'd1 ? short_index : bug_i == 2'd3 ? plain_index ^ 7'd1 : plain_index;

  gid_match u_plain (
    .clk_i, .rst_ni, .valid_i, .ready_o(plain_ready), .dgid_i, .v2_i(v2_i && !same_version),
    .write_i, .write_index_i, .write_id_i, .write_v2_i(write_v2_i && !same_version), .write_valid_i,
    .result_valid_o(plain_valid), .hit_o(plain_hit), .index_o(plain_index)
  );
  gid_match #(
    .Compared(15)
  ) u_short (
    .clk_i, .rst_ni, .valid_i, .ready_o(short_ready), .dgid_i, .v2_i, .write_i, .write_index_i, .write_id_i,
    .write_v2_i, .write_valid_i, .result_valid_o(short_valid), .hit_o(short_hit), .index_o(short_index)
  );

endmodule
