#include "serve/totals.h"

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "wattle-serve-state/1"

/* ---- writing ---- */

struct document {
	const char *node, *boot;
	bool is_last;
	const struct monitor *now;
	size_t n_domains;
	struct monitor_kept *kept; // the domain being written
	const struct totals *totals;
};

static size_t domain_count(const struct object_at *at)
{
	return ((const struct document *)at->data)->n_domains;
}

static const void *domain_item(const struct object_at *at, size_t i)
{
	const struct document *document = at->data;
	monitor_keep(document->now, i, document->kept);
	return document->kept;
}

static bool has_raw(const struct object_at *at)
{
	return ((const struct monitor_kept *)at->data)->has_raw;
}

// clang-format off
#define K struct monitor_kept
static const struct field domain_fields[] = {
	FIELD_AS(K, "domain", name, NULL, "name of the domain", .known = true),
	FIELD(K, uuid, NULL, "UUID of a GPU", .known = true),
	FIELD(K, source, NULL, "sensor that is read", .known = true),
	FIELD(K, energy_uj, "µJ", "energy since counting began"),
	FIELD(K, wraps, NULL, "number of wraps of the counter"),
	FIELD(K, resets, NULL, "number of resets of the counter"),
	FIELD(K, gaps, NULL, "number of gaps in the readings of the counter"),
	FIELD_AS(K, "raw_uj", last_raw, "µJ", "last value of the counter", .present = has_raw),
	FIELD_AS(K, "read_ns", last_t_ns, "ns", "time of the last reading", .present = has_raw),
	FIELD_AS(K, "changed_ns", last_change_ns, "ns", "time of the last change", .present = has_raw),
	FIELD(K, mean_power_w, "W", "recent mean power", .present = has_raw),
	FIELD(K, mean_span_s, "s", "duration of this mean", .present = has_raw),
};
#undef K
static const struct object_type domain_type = OBJECT_TYPE("kept_domain", "Counter state of a domain.", domain_fields);

#define D struct document
static const struct field state_fields[] = {
	FIELD_SCHEMA(SCHEMA),
	FIELD(D, node, NULL, "name of this machine", .known = true),
	FIELD(D, boot, NULL, "identity of this boot and of the sensors", .known = true),
	FIELD_AS(D, "ended_in_order", is_last, NULL, "whether this is the last state of a server that ended normally"),
	FIELD_LIST("domains", &domain_type, domain_count, domain_item, "domains"),
	FIELD_INLINE_OF(D, totals, &serve_totals_type),
};
#undef D
static const struct object_type state_type = OBJECT_TYPE("state", "Counters of a server.", state_fields);
// clang-format on

static void make_text(struct state *state, const struct monitor *now, size_t n_domains, const struct totals *totals,
	bool is_last)
{
	struct monitor_kept kept;
	const struct document document = {state->node, state->boot, is_last, now, n_domains, &kept, totals};
	buf_clear(&state->text);
	document_json(&state->text, &state_type, &document, false);
	buf_char(&state->text, '\n');
}

/* Exchanging two files costs a third of replacing one at each scrape: the file system need not create, allocate, flush and
 * delete one. A file that must reach the disk is new, and the previous one is deleted, so a power failure cannot restore
 * old values. */
static int rename_file(const struct state *state, const char *temporary, bool on_disk)
{
	if (!on_disk && renameat2(state->folder_fd, temporary, state->folder_fd, state->name, RENAME_EXCHANGE) == 0)
		return 0;
	return renameat(state->folder_fd, temporary, state->folder_fd, state->name) < 0 ? -errno : 0;
}

// Replaces the file atomically. Syncs to disk only where a power failure matters.
static int replace(const struct state *state, bool on_disk)
{
	char temporary[sizeof(state->name) + 8];
	snprintf(temporary, sizeof(temporary), "%s.tmp", state->name);
	wattle_cleanup_close int fd = openat(state->folder_fd, temporary,
		O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (on_disk ? O_TRUNC : 0), 0600);
	if (fd < 0 && errno == ENXIO) // a FIFO without a reader: remove it and retry at the next sample
		unlinkat(state->folder_fd, temporary, 0);
	if (fd < 0 ||
		(on_disk &&
			fchmod(fd, 0600) < 0)) // power and command lines are sensitive; earlier versions made it world-readable
		return -errno;
	int r = state->text.failed != 0 ? state->text.failed : buf_write_fd(&state->text, fd);
	if (r == 0 && ftruncate(fd, (off_t)state->text.size) < 0)
		r = -errno;
	if (r == 0 && on_disk && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		r = rename_file(state, temporary, on_disk);
	if (r < 0)
		unlinkat(state->folder_fd, temporary, 0);
	return r;
}

// After a failed write, removes the file: counting on from an older one would make counters decrease.
static void drop(const struct state *state)
{
	if (unlinkat(state->folder_fd, state->name, 0) == 0 || errno == ENOENT)
		return;
	// The folder may be read-only now while the file is still writable: truncate it.
	wattle_cleanup_close int fd = openat(state->folder_fd, state->name,
		O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	(void)fd;
}

void state_write(struct state *state, const struct monitor *now, size_t n_domains, const struct totals *totals,
	uint64_t sample, bool is_last)
{
	if (state->folder_fd < 0 || (state->written_sample == sample && !is_last))
		return;
	/* The final state must be on disk to count after a reboot. So must the first state after a start, or a power
	 * failure would restore the final state of the previous boot as if it were current. */
	bool on_disk = is_last || state->written_sample == 0;
	state->written_sample = sample;
	make_text(state, now, n_domains, totals, is_last);
	state->failed = replace(state, on_disk);
	if (on_disk)
		fsync(state->folder_fd);
	if (state->failed < 0)
		drop(state);
}

/* ---- reading ---- */

static bool take_text(const json_t *object, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL && text_copy(out, size, text);
}

static int64_t take_count(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));
	return value > 0 && value < INT64_MAX / 2 ? value : 0; // leaves headroom for the sum to grow
}

static bool take_domain(const json_t *object, struct monitor_kept *ret_kept)
{
	struct monitor_kept kept = {
		.energy_uj = take_count(object, "energy_uj"),
		.wraps = (uint32_t)take_count(object, "wraps"),
		.resets = (uint32_t)take_count(object, "resets"),
		.gaps = (uint32_t)take_count(object, "gaps"),
		.has_raw = json_is_integer(json_object_get(object, "raw_uj")),
		.last_raw = (uint64_t)take_count(object, "raw_uj"),
		.last_t_ns = take_count(object, "read_ns"),
		.last_change_ns = take_count(object, "changed_ns"),
		.mean_power_w = json_number_value(json_object_get(object, "mean_power_w")),
		.mean_span_s = json_number_value(json_object_get(object, "mean_span_s")),
	};
	if (!take_text(object, "domain", kept.name, sizeof(kept.name)) ||
		!take_text(object, "uuid", kept.uuid, sizeof(kept.uuid)) ||
		!take_text(object, "source", kept.source, sizeof(kept.source)))
		return false;
	*ret_kept = kept;
	return true;
}

static bool is_text(const json_t *object, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL && strcmp(text, wanted) == 0;
}

// State of another boot counts only if the server ended in order.
static bool counts_on(const struct state *state, const json_t *object)
{
	if (!is_text(object, "schema", SCHEMA))
		return false;
	if (is_text(object, "boot", state->boot))
		return true;
	// A custom sensor root (tests, containers) is not a later boot of this machine.
	const char *boot = json_string_value(json_object_get(object, "boot"));
	bool is_made = boot == NULL || strchr(boot, ' ') != NULL || strchr(state->boot, ' ') != NULL;
	return !is_made && is_text(object, "node", state->node) &&
		json_is_true(json_object_get(object, "ended_in_order"));
}

void state_read(struct state *state, struct state_read *ret_read)
{
	*ret_read = (struct state_read){0};
	char *text;
	size_t size, i;
	json_t *domain;
	if (state->folder_fd < 0 || file_read_all_in(state->folder_fd, state->name, STATE_CEILING, &text, &size) < 0)
		return;
	json_t *object = json_loadb(text, size, 0, NULL);
	free(text);
	if (!counts_on(state, object)) {
		json_decref(object);
		return;
	}
	ret_read->object = object;
	ret_read->same_boot = is_text(object, "boot", state->boot);
	json_array_foreach(json_object_get(object, "domains"), i, domain) if (ret_read->n_domains < STATE_DOMAINS_MAX &&
		take_domain(domain, &ret_read->domains[ret_read->n_domains])) ret_read->n_domains++;
}

void state_read_finish(struct state_read *read)
{
	json_decref(read->object);
	*read = (struct state_read){0};
}
