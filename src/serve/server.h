/* The server: one thread, one loop over the sockets and a timer. Only the timer triggers samples, so client requests
 * cannot increase the measurement cost or resolution. All clients get the last sample. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "monitor/monitor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server_options {
	const struct wattle_env *env;   // borrowed until close
	const char *listen;             // serve/address.c; NULL: no socket, textfile only
	const char *textfile;           // serve/textfile.c; NULL: none
	const char *node;               // label of this machine in metrics; NULL: host name
	const char *token_file;         // NULL: no token
	bool hide_command;              // show the program name only, without arguments
	bool seed_names;                // also export AIPowerMeter's gauges
	size_t max_processes;           // number of processes with their own series
	size_t most[MONITOR_GROUPINGS]; // number of jobs and of cgroups with their own series
	int64_t interval_ns;            // sampling interval
	pid_t pid;                      // root of the target process tree; 0: none
};

struct server;

/* Opens the address first, then the sensors. -EINVAL, -EPERM: invalid options; else the errno of the failed resource.
 * Always sets *reterr. */
int serve_open(const struct server_options *options, struct server **ret_server, struct wattle_error *reterr);
const char *server_url(const struct server *server);     // "http://127.0.0.1:9095/", "unix:PATH"
const char *server_problem(const struct server *server); // why no energy is measured; NULL: some is
// Next non-fatal error, each reported once. NULL: none.
const char *server_warning(struct server *server);
bool server_token_is_short(const struct server *server);
// Runs until stop_fd is readable. Negative errno: the event loop failed. warn: receives the texts of server_warning.
int server_run(struct server *server, int stop_fd, void (*warn)(const char *text));
void serve_close(struct server *server); // NULL allowed
