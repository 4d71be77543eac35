/* The sender of `run --store`: a process beside the recorder that follows the run file and sends what is new to PostgreSQL, by the
 * very code of `wattle push`. The recorder never waits for it: they share a page of figures, and a line on which the recorder says that
 * the run has begun, and that it is over. Killed, another one is started when the run is over, and goes on where the server says that it was. When the recorder
 * is killed, it sends what is stored and ends. */
#pragma once

#include "base/error.h"
#include "process/companion.h"

#include <stdbool.h>
#include <stdint.h>

struct sender;

struct sender_options {
	const char *url, *path;   // borrowed; path: of the run file
	int64_t wait_ns;          // --store-wait
	void (*warn)(void *data, const char *text); // one line, no newline
	void *data;
};

/* Forks it; it does not touch the file yet. Waits for its word that libpq is there, milliseconds: -ENOSYS, with a sentence that names
 * the package. */
int sender_start(const struct sender_options *options, struct sender **ret_sender, struct wattle_error *reterr);
struct companion *sender_companion(struct sender *sender);
// About once a second: tells it that the file is there, passes on what it has to say.
void sender_tend(struct sender *sender);
// The run is over, its file closed, and it is at `path`: the rest can be sent. Does not wait.
void sender_over(struct sender *sender, const char *path);
struct sender_result {
	bool is_done; // everything is on the server
	char run_id[40], where[256];
	struct wattle_error why; // it is not
};
// After sender_over: waits until everything is on the server, --store-wait at most, or until SIGINT or SIGTERM comes.
void sender_wait(struct sender *sender, struct sender_result *ret_result);
void sender_free(struct sender *sender); // ends it at once if it is still there; NULL is fine

/* sender_loop.c: the process itself, between room-mates. */
enum sender_state { SENDER_LOADS, SENDER_LACKS_LIBRARY, SENDER_IS_READY, SENDER_SENDS, SENDER_WAITS, SENDER_GAVE_UP, SENDER_IS_DONE };

struct sender_page { // shared by both
	struct companion companion;
	_Atomic int64_t cpu_before_ns; // of those that were before this one
	_Atomic int state;             // enum sender_state
	_Atomic uint32_t n_good;       // turns that went well
	_Atomic uint32_t n_told;       // odd while text is written
	char text[600];                // why it waits; as of a wattle_error
	char run_id[40], where[256];   // once it is done
};

enum { SENDER_SAYS_GO = 'g', SENDER_SAYS_OVER = 'o' }; // the second is followed by the path

void sender_loop(struct sender_page *page, const struct sender_options *options, int line_fd) __attribute__((noreturn));
