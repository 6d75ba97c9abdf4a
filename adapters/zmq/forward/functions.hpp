// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format has no stable layout for lists like this.
// clang-format off

// Every function of libzmq 4.3 except drafts. None has more than six arguments, and each argument is an integer or a
// pointer.
#define WHERRY_ZMQ_FUNCTIONS(X)                                                                                   \
  X(zmq_atomic_counter_dec) X(zmq_atomic_counter_destroy) X(zmq_atomic_counter_inc) X(zmq_atomic_counter_new)     \
  X(zmq_atomic_counter_set) X(zmq_atomic_counter_value) X(zmq_bind) X(zmq_close) X(zmq_connect)                   \
  X(zmq_ctx_destroy) X(zmq_ctx_get) X(zmq_ctx_new) X(zmq_ctx_set) X(zmq_ctx_shutdown) X(zmq_ctx_term)             \
  X(zmq_curve_keypair) X(zmq_curve_public) X(zmq_device) X(zmq_disconnect) X(zmq_errno) X(zmq_getsockopt)         \
  X(zmq_has) X(zmq_init) X(zmq_msg_close) X(zmq_msg_copy) X(zmq_msg_data) X(zmq_msg_get) X(zmq_msg_gets)          \
  X(zmq_msg_init) X(zmq_msg_init_data) X(zmq_msg_init_size) X(zmq_msg_more) X(zmq_msg_move) X(zmq_msg_recv)       \
  X(zmq_msg_send) X(zmq_msg_set) X(zmq_msg_size) X(zmq_poll) X(zmq_proxy) X(zmq_proxy_steerable) X(zmq_recv)      \
  X(zmq_recviov) X(zmq_recvmsg) X(zmq_send) X(zmq_send_const) X(zmq_sendiov) X(zmq_sendmsg) X(zmq_setsockopt)     \
  X(zmq_sleep) X(zmq_socket) X(zmq_socket_monitor) X(zmq_stopwatch_intermediate) X(zmq_stopwatch_start)           \
  X(zmq_stopwatch_stop) X(zmq_strerror) X(zmq_term) X(zmq_threadclose) X(zmq_threadstart) X(zmq_timers_add)       \
  X(zmq_timers_cancel) X(zmq_timers_destroy) X(zmq_timers_execute) X(zmq_timers_new) X(zmq_timers_reset)          \
  X(zmq_timers_set_interval) X(zmq_timers_timeout) X(zmq_unbind) X(zmq_version) X(zmq_z85_decode)                 \
  X(zmq_z85_encode)

// clang-format on
