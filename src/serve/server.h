/* The server: one thread, one loop over the sockets and a timer. Looks come by the timer alone, so what clients ask
 * can neither cost nor tell more than the interval allows; they all get what the last look saw. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "now/now.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server_options {
	const struct wattle_env *env; // borrowed until close
	const char *listen;           // serve/address.c; NULL: nobody is served, there is the textfile alone
	const char *textfile;         // serve/textfile.c; NULL: none
	const char *node;             // what this machine is called in metrics; NULL: by its own name
	const char *token_file;       // NULL: none
	bool hide_command;            // of processes the program's name alone
	bool seed_names;              // the gauges of AIPowerMeter as well
	size_t most_processes;        // so many have metrics of their own
	size_t most[NOW_GROUPINGS];   // so many jobs and cgroups
	int64_t interval_ns;          // between two looks
	pid_t pid;                    // whose tree is the target; 0: none
};

struct server;

/* Opens the address first, then the sensors. -EINVAL, -EPERM: the options are wrong; else what can't be had. A
 * sentence in all cases. */
int serve_open(const struct server_options *options, struct server **ret_server, struct wattle_error *reterr);
const char *server_url(const struct server *server);     // "http://127.0.0.1:9095/", "unix:PATH"
const char *server_problem(const struct server *server); // why there is no energy at all; NULL: there is some
// What goes wrong without ending us, a sentence; each once. NULL: nothing (more).
const char *server_warning(struct server *server);
bool server_token_is_short(const struct server *server);
// Until stop_fd can be read. Negative errno: the loop itself is broken. warn: called with what server_warning has to say.
int server_run(struct server *server, int stop_fd, void (*warn)(const char *text));
void serve_close(struct server *server); // NULL allowed
