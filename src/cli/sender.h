/* The sender of `run --store`: a process beside the recorder that follows the run file and sends what is new to PostgreSQL, by the
 * very code of `wattle push`. The recorder never waits for it: they share a page, of what it is to do and of figures, and a line on which
 * the recorder says that the run has begun, and that it is over. Killed, it has a successor a second later (then two, four … 30), which
 * goes on where the server says that it was. When the recorder is killed, it sends what is stored and ends. */
#pragma once

#include "base/error.h"
#include "process/companion.h"

#include <stdbool.h>
#include <stdint.h>

struct sender;

struct sender_options {
	const char *url, *path;                     // path: of the run file. Only sender_start looks at these
	int64_t wait_ns;                            // --store-wait
	void (*warn)(void *data, const char *text); // one line, no newline
	void *data;
};

// It does not touch the file yet, and loads what it needs while the recorder goes on.
int sender_start(const struct sender_options *options, struct sender **ret_sender, struct wattle_error *reterr);
/* Waits for its word that libpq is there, milliseconds. -ENOSYS with a sentence that names the package; another error: it can't be
 * started. */
int sender_ready(struct sender *sender, struct wattle_error *reterr);
struct companion *sender_companion(struct sender *sender);
// About once a second: tells it that the file is there, starts another one if it was killed, passes on what it has to say.
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

/* sender_process.c, sender_loop.c: the process itself. Between room-mates, but for sender_main. */
enum sender_state {
	SENDER_LOADS,
	SENDER_LACKS_LIBRARY,
	SENDER_IS_READY,
	SENDER_SENDS,
	SENDER_WAITS,
	SENDER_GAVE_UP,
	SENDER_IS_DONE
};

struct sender_page { // shared by both
	struct companion companion;
	char url[4096], path[4096];    // what it is to do
	int64_t wait_ns;               // once the recorder is gone
	_Atomic bool has_begun;        // the file is there; said on the line too
	_Atomic int failed;            // errno: it could not be started
	_Atomic int64_t cpu_before_ns; // of those that were before this one
	_Atomic int state;             // enum sender_state
	_Atomic uint32_t n_good;       // turns that went well
	_Atomic uint32_t n_told;       // odd while text is written
	char text[600];                // why it waits; as of a wattle_error
	char run_id[40], where[256];   // once it is done
};

enum { SENDER_SAYS_GO = 'g', SENDER_SAYS_OVER = 'o' }; // the second is followed by the path

int sender_page_new(struct sender_page **ret_page);                    // its descriptor, to be passed on, or -errno
pid_t sender_fork(struct sender_page *page, int page_fd, int line_fd); // or -errno
int sender_main(
	void); // of `wattle --sender`, which has the line and the page as its descriptors and is nothing for people
void sender_loop(struct sender_page *page, int line_fd) __attribute__((noreturn));
