/* libmicrohttpd, loaded when it is wanted: it brings GnuTLS along, which no other command should have to start with.
 * Its header gives the types. */
#pragma once

#include "base/error.h"

#include <microhttpd.h>

// SYMBOL(member, name)
#define MHD_SYMBOLS(SYMBOL)                                                                                            \
	SYMBOL(start, MHD_start_daemon)                                                                                \
	SYMBOL(stop, MHD_stop_daemon)                                                                                  \
	SYMBOL(run, MHD_run)                                                                                           \
	SYMBOL(timeout, MHD_get_timeout)                                                                               \
	SYMBOL(daemon_info, MHD_get_daemon_info)                                                                       \
	SYMBOL(connection_info, MHD_get_connection_info)                                                               \
	SYMBOL(values, MHD_get_connection_values)                                                                      \
	SYMBOL(value, MHD_lookup_connection_value)                                                                     \
	SYMBOL(response, MHD_create_response_from_buffer)                                                              \
	SYMBOL(header, MHD_add_response_header)                                                                        \
	SYMBOL(queue, MHD_queue_response)                                                                              \
	SYMBOL(drop, MHD_destroy_response)

struct mhd {
	void *handle; // owned
#define MHD_MEMBER(member, name) __typeof__(name) *member;
	MHD_SYMBOLS(MHD_MEMBER)
#undef MHD_MEMBER
};

// -ENOENT, -ENOSYS: a sentence that names the package.
int mhd_open(struct mhd *ret_mhd, struct wattle_error *reterr);
void mhd_close(struct mhd *mhd);
