/* Where to listen: the text of --listen into a listening socket. "127.0.0.1:9095", "[::1]:9095", "localhost:0",
 * ":9095" (all addresses), "unix:/run/wattle/serve.sock". Port 0 is any free one. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct address {
	int fd;                // owned; listening, not blocking
	bool is_local;         // only programs of this machine reach it
	char host[256];        // as it was asked for, without brackets; "" all addresses, or a Unix socket
	char url[320];         // with the port that it got: "http://127.0.0.1:9095/"; of a Unix socket "unix:PATH"
	char socket_path[104]; // to be removed; "": none
	dev_t st_dev;          // of the socket as it was made
	ino_t st_ino;
};

/* -EINVAL: no such form or no such host, with a sentence that says what would be right; -EPERM: other machines could
 * reach it, and `may_be_public` is not set; else what bind and listen have to say. */
int address_open(struct address *ret_address, const char *listen, bool may_be_public, struct wattle_error *reterr);
void address_close(struct address *address);
