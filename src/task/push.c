#include "task/task.h"

#include "analysis/findings.h"
#include "base/clock.h"
#include "base/fields.h"
#include "base/util.h"
#include "store/follow.h"
#include "store/postgres/pq.h"
#include "store/run.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

enum { JSON_CEILING = 1 << 28 };

/* ---- values of the whole run ---- */

static const char *provenance(const struct object_at *at, struct buf *scratch)
{
	const struct findings *findings = at->data;
	return isnan(findings->total_j) ? NULL : provenance_name(findings->provenance);
}

// clang-format off
#define F struct findings
static const struct field recording_fields[] = {
	FIELD(F, duration_s, "s", "duration of the run"),
	FIELD(F, samples, NULL, "samples"),
	FIELD_BY(F, run, "spans", struct run, n_spans, NULL, "spans"),
	FIELD(F, complete, NULL, "whether the recorder ended normally"),
	FIELD_AS(F, "energy_j", total_j, "J", "energy of all domains that do not overlap"),
	FIELD(F, error_j, "J", "half of the 95 % interval"),
	FIELD_TEXT("provenance", provenance, NULL, "weakest provenance of its parts", .one_of = provenance_names),
};
#undef F
static const struct object_type recording_type = OBJECT_TYPE("recording", "Columns of table recording.", recording_fields);

#define B struct block_finding
static const struct field block_fields[] = {
	FIELD(B, name, NULL, "name of the block"),
#define BLOCK_COUNT(member, key, column, title, meaning) FIELD_AS(B, #column, member, NULL, meaning),
#define BLOCK_FIGURE(member, column, RANKS, unit, title, meaning) FIELD_AS(B, #column, member, unit, meaning),
#include "metric/blocks.def"
};
#undef B
static const struct object_type block_type = OBJECT_TYPE("block", "Columns of table block.", block_fields);

static const struct field figures_fields[] = {
	FIELD_SELF("recording", &recording_type, "the run"),
	FIELD_ITEMS(struct findings, "block", blocks, n_blocks, &block_type, "its code blocks"),
};
static const struct object_type figures_type = OBJECT_TYPE("figures", "Figures computed from a whole run.", figures_fields);
// clang-format on

static int make_report(const char *path, struct buf *out, struct wattle_error *reterr)
{
	struct run run;
	struct findings findings;
	int r = run_load(path, &run, reterr);
	if (r < 0)
		return r;
	r = findings_make(&run, &findings);
	if (r == 0) {
		document_json(out, &figures_type, &findings, false);
		findings_finish(&findings);
	}
	run_finish(&run);
	if (r == 0)
		r = out->failed;
	return r < 0 ? error_set(reterr, r, "%s: can't create a report from it: %s", path, strerror(-r)) : 0;
}

int push_end(struct send *send, const char *path, struct wattle_error *reterr)
{
	int r = send_remaining(send, reterr);
	if (r < 0 || !send_wants_report(send))
		return r;
	struct buf json;
	buf_init(&json, JSON_CEILING);
	r = make_report(path, &json, reterr);
	if (r == 0)
		r = send_report(send, json.data, reterr);
	buf_finish(&json);
	return r;
}

/* ---- sending a file ---- */

int64_t push_backoff_ns(int n)
{
	static const int64_t first_ns = 200 * NS_PER_MS, max_ns = 20 * NS_PER_S;
	int64_t wait_ns = n < 8 ? first_ns << (n > 0 ? n - 1 : 0) : max_ns;
	uint32_t chance = 0;
	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		chance = 0;
	wait_ns = wait_ns < max_ns ? wait_ns : max_ns;
	return wait_ns / 2 + wait_ns * (int64_t)(chance % 1024) / 1024;
}

static void wait_for(int64_t wait_ns)
{
	const struct timespec time = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
	nanosleep(&time, NULL);
}

static int push_once(struct send *send, const char *path, bool is_live, struct wattle_error *reterr)
{
	int r = send_batch(send, is_live, reterr);
	return r != 0 || is_live ? r : push_end(send, path, reterr);
}

static int push_all(struct send *send, const char *path, bool is_live, int64_t wait_ns, struct wattle_error *reterr)
{
	int64_t good_ns = clock_now_ns(); // time of the last successful batch
	for (int n_failed = 0;;) {
		int r = push_once(send, path, is_live, reterr);
		if (r == 0 || (r < 0 && r != -EBUSY && !pg_may_pass(r)))
			return r;
		int64_t waited_ns = clock_now_ns() - good_ns; // includes the time spent waiting for the server
		if (r == 1) {
			n_failed = 0;
			good_ns += waited_ns;
			continue;
		}
		if (waited_ns >= wait_ns)
			return r;
		int64_t pause_ns = push_backoff_ns(++n_failed);
		wait_for(pause_ns < wait_ns - waited_ns ? pause_ns : wait_ns - waited_ns);
	}
}

int push_file(const char *path, const char *url, int64_t wait_ns, struct push_result *ret_result,
	struct wattle_error *reterr)
{
	struct send *send = send_new(path, url);
	if (send == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	bool is_live = spool_merge_is_writer_alive(path);
	int r = is_live ? 0 : spool_merge_run_file(path, reterr);
	if (r == 0)
		r = push_all(send, path, is_live, wait_ns, reterr);
	if (r == 0) {
		*ret_result = (struct push_result){.sent = send_count(send), .is_live = is_live};
		text_copy(ret_result->run_id, sizeof(ret_result->run_id), send_run_id(send));
	}
	send_free(send);
	return r;
}
