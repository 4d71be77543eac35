#include "task/push.h"

#include "analysis/findings.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/util.h"
#include "store/postgres/pq.h"
#include "store/run.h"
#include "store/settle.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

enum { JSON_CEILING = 1 << 28 };

/* ---- what the whole run tells ---- */

static void put_recording(struct jsonw *j, const struct findings *findings)
{
	jsonw_key(j, "recording");
	jsonw_begin_object(j);
	jsonw_key_double(j, "duration_s", findings->duration_s);
	jsonw_key_i64(j, "samples", findings->samples);
	jsonw_key_i64(j, "spans", (int64_t)findings->run->n_spans);
	jsonw_key_bool(j, "complete", findings->complete);
	jsonw_key_double(j, "energy_j", findings->total_j);
	jsonw_key_double(j, "error_j", findings->error_j);
	jsonw_key_string(j, "provenance", isnan(findings->total_j) ? NULL : provenance_name(findings->provenance));
	jsonw_end_object(j);
}

static void put_block(struct jsonw *j, const struct block_finding *block)
{
	const struct {
		const char *key;
		double value;
	} figures[] = {
		{"time_min_s", block->compute_time_s.min},
		{"time_max_s", block->compute_time_s.max},
		{"time_mean_s", block->compute_time_s.mean},
		{"time_std_s", block->compute_time_s.std},
		{"time_total_s", block->compute_time_s.total},
		{"active_s", block->active_s},
		{"self_time_s", block->self_time_s},
		{"cpu_s", block->thread_cpu_s},
		{"energy_j", block->total_j},
		{"error_j", block->error_j},
		{"self_j", block->self_j},
	};
	jsonw_begin_object(j);
	jsonw_key_string(j, "name", block->name);
	jsonw_key_i64(j, "calls", block->calls);
	jsonw_key_i64(j, "non_empty_calls", block->non_empty_calls);
	jsonw_key_i64(j, "unwound", block->unwound);
	jsonw_key_i64(j, "cut", block->cut);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		jsonw_key_double(j, figures[i].key, figures[i].value);
	jsonw_end_object(j);
}

static void put_findings(const struct findings *findings, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	put_recording(&j, findings);
	jsonw_key(&j, "block");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < findings->n_blocks; i++)
		put_block(&j, &findings->blocks[i]);
	jsonw_end_array(&j);
	jsonw_end_object(&j);
}

static int make_report(const char *path, struct buf *out, struct wattle_error *reterr)
{
	struct run run;
	struct findings findings;
	int r = run_load(path, &run, reterr);
	if (r < 0)
		return r;
	r = findings_make(&run, &findings);
	if (r == 0) {
		put_findings(&findings, out);
		findings_finish(&findings);
	}
	run_finish(&run);
	if (r == 0)
		r = out->failed;
	return r < 0 ? error_set(reterr, r, "%s: no report could be made of it: %s", path, strerror(-r)) : 0;
}

int push_end(struct send *send, const char *path, struct wattle_error *reterr)
{
	int r = send_rest(send, reterr);
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

/* ---- all of a file ---- */

int64_t push_backoff_ns(int n)
{
	static const int64_t first_ns = 200 * NS_PER_MS, most_ns = 20 * NS_PER_S;
	int64_t wait_ns = n < 8 ? first_ns << (n > 0 ? n - 1 : 0) : most_ns;
	uint32_t chance = 0;
	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		chance = 0;
	wait_ns = wait_ns < most_ns ? wait_ns : most_ns;
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
	int64_t good_ns = clock_now_ns(); // the last time that the server took something
	for (int n_failed = 0;;) {
		int r = push_once(send, path, is_live, reterr);
		if (r == 0 || (r < 0 && r != -EBUSY && !pg_may_pass(r)))
			return r;
		int64_t waited_ns = clock_now_ns() - good_ns; // what was waited for the server's answer included
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
	bool is_live = settle_may_grow(path);
	int r = is_live ? 0 : settle_run_file(path, reterr);
	if (r == 0)
		r = push_all(send, path, is_live, wait_ns, reterr);
	if (r == 0) {
		*ret_result = (struct push_result){.sent = send_count(send), .is_live = is_live};
		text_copy(ret_result->run_id, sizeof(ret_result->run_id), send_run_id(send));
	}
	send_free(send);
	return r;
}
