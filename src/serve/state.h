/* What wattle serve counts on from when it is started again: a file in the state folder (WATTLE_STATE).
 *
 * A counter that steps back a little reads, to Prometheus, like one that began anew and reached its old height at once: joules by the
 * million that nobody used. So the file is written before what it says is told to anybody; no power cut may bring back an older one: after
 * the machine has started anew it counts only if we had ended in order (it is then on disk), else all counters begin at 0, together. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "now/now.h"
#include "serve/tally.h"

enum { STATE_DOMAINS_MAX = 256, STATE_CEILING = 1 << 24 };

struct state {
	const struct wattle_env *env; // borrowed
	int folder_fd;                // owned: the state folder; -1: nothing is kept
	char name[256];               // of the file in it
	int lock_fd;                  // owned; held as long as we are the one who writes it; -1
	char node[256];               // this machine's name
	char boot[128];               // this boot of it, and whose sensors these are
	struct buf text;
	uint64_t written_look;
	int failed; // why the last try to write failed: negative errno; 0: it did not
};

/* node: this machine's name, for folders that several machines share. key: what tells servers of one machine apart, as where they listen.
 * Negative errno, with a sentence: counters will begin at 0 at each start; all calls below do nothing then. */
int state_open(struct state *state, const struct wattle_env *env, const char *node, const char *key,
	struct wattle_error *reterr);
void state_close(struct state *state);

struct state_read { // what the file told
	struct now_kept domains[STATE_DOMAINS_MAX];
	size_t n_domains;
	bool same_boot;
	json_t *object; // owned; NULL: there is nothing to count on from
};
void state_read(struct state *state, struct state_read *ret_read);
void state_read_finish(struct state_read *read);

// Once a look at most. is_last: we end in order.
void state_write(struct state *state, const struct now_state *now, size_t n_domains, const struct tally *tally,
	uint64_t look, bool is_last);
