/* Energy counters that root alone may read: from the file where this process may, else through the helper, which reads
 * them for those whom its policy lets. Sensors see a counter and do not care which.
 *
 * The helper is looked for when the first file is refused, never before. All its counters come by one question a tick. It
 * may be killed, hang and be started again meanwhile: a question that is not answered costs one short wait, and then it is
 * asked again now and then only; its counters are missing until it answers, which the notes of their domains say. */
#pragma once

#include "base/file.h"
#include "proto/client.h"
#include "sensor/sensor.h"

struct privileged_counter {
	struct file_kept file;
	bool is_helped;             // its file is refused
	char name[PROTO_NAME_SIZE]; // in the helper's table
	int number;                 // there; -1: not in the table of the helper that answers now
	struct proto_reading last;
};

struct privileged {
	const struct wattle_env *env;        // borrowed
	struct privileged_counter *counters; // owned; do not move after the last privileged_add
	size_t n, capacity, n_helped;

	struct proto_client client;
	struct proto_hello hello;
	int code;                   // of the last try to talk with the helper; 0: it answers
	int64_t retry_ns, pause_ns; // when it is tried again, and how long after that
};

void privileged_init(struct privileged *set, const struct wattle_env *env);
void privileged_close(struct privileged *set);
// path: of the file in /sys; name: in the helper's table. The counter's index, or -ENOMEM. Asks no helper yet.
int privileged_add(struct privileged *set, const char *path, const char *name);

// A new reading of all that come from the helper. Does nothing where none does.
void privileged_refresh(struct privileged *set);
/* The file's number now, or what the last refresh brought. *ret_t_ns: when the helper read it, which may be a while ago as
 * it does not read for everybody as often as they ask; VALUE_MISSING: now. Negative errno; of a refused file -EACCES or
 * -EPERM until a helper has it. */
int privileged_read(struct privileged *set, size_t index, uint64_t *ret_uj, int64_t *ret_t_ns);
// As DEVICE_ENERGY_RAW and DEVICE_ENERGY_TIME.
void privileged_fill(struct privileged *set, size_t index, int64_t row[DEVICE_COUNT]);

/* What is to be said of a domain that such a counter feeds, after its first reading gave `code`: readable or not, used, why,
 * remedy, note, and how often the helper reads it for us. */
void privileged_describe(const struct privileged *set, size_t index, int code, struct domain *domain);
// Keeps the note up; after each refresh.
void privileged_note(const struct privileged *set, size_t index, struct domain *domain);
