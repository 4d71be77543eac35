/* This look as JSON, "wattle-now/1"; docs/serve.md has every key. */
#include "serve/view.h"

#include "base/util.h"
#include "metric/throttle.h"
#include "report/parts.h"

static void key_time(struct jsonw *j, const char *key, int64_t wall_ns)
{
	struct buf text;
	buf_init(&text, 64);
	rfc3339(&text, wall_ns);
	jsonw_key_string(j, key, text.failed ? NULL : text.data);
	buf_finish(&text);
}

static double joules(int64_t energy_uj)
{
	return value_to_double(energy_uj, 1e-6);
}

static void ledger(const struct view *view, struct jsonw *j)
{
	const struct now_sum *sum = &view->now->sum;
	jsonw_key(j, "ledger");
	jsonw_begin_object(j);
	jsonw_key_double(j, "target_w", view->has_target ? sum->target_w : (double)NAN);
	jsonw_key_double(j, "others_w", sum->others_w);
	jsonw_key_double(j, "wattle_w", sum->own_w);
	jsonw_key_double(j, "idle_w", sum->idle_w);
	jsonw_key_double(j, "unattributed_w", sum->unattributed_w);
	jsonw_end_object(j);
}

static void throttling(const struct now_domain *domain, struct jsonw *j)
{
	char words[THROTTLE_WORDS_SIZE];
	throttle_words(domain->throttle_bits, words);
	jsonw_key_string(j, "throttling",
		value_ok(domain->throttle_bits) ? words : NULL); // "": nothing holds them back
}

static void domain(const struct view *view, const struct now_domain *domain, struct jsonw *j)
{
	const struct domain *d = domain->domain;
	jsonw_begin_object(j);
	jsonw_key_string(j, "domain", d->name);
	jsonw_key_string(j, "kind", domain_kind_name(d->kind));
	jsonw_key_string(j, "device", d->device);
	jsonw_key_string(j, "uuid", d->uuid[0] != '\0' ? d->uuid : NULL);
	jsonw_key_string(j, "inside", d->inside[0] != '\0' ? d->inside : NULL);
	jsonw_key_string(j, "source", domain->source);
	jsonw_key_string(j, "provenance", provenance_name(d->provenance));
	jsonw_key_bool(j, "in_total", domain->in_total);
	jsonw_key_double(j, "power_w", domain->power_w);
	jsonw_key_double(j, "energy_j", joules(domain->energy_uj));
	jsonw_key_double(j, "cap_w", domain->cap_w);
	jsonw_key_double(j, "target_w", view->has_target ? domain->target_w : (double)NAN);
	jsonw_key_double(j, "utilization_percent", domain->utilization_percent);
	jsonw_key_double(j, "memory_used_bytes", domain->memory_used_bytes);
	jsonw_key_double(j, "memory_total_bytes", domain->memory_total_bytes);
	jsonw_key_double(j, "temperature_c", domain->temperature_c);
	jsonw_key_double(j, "clock_mhz", domain->clock_mhz);
	throttling(domain, j);
	jsonw_key_i64(j, "wraps", domain->wraps);
	jsonw_key_i64(j, "resets", domain->resets);
	jsonw_key_i64(j, "gaps", domain->gaps);
	jsonw_end_object(j);
}

static void process(const struct now_process *process, struct jsonw *j)
{
	const char state[] = {process->state, '\0'};
	jsonw_begin_object(j);
	jsonw_key_i64(j, "pid", process->pid);
	jsonw_key_i64(j, "ppid", process->ppid);
	jsonw_key_i64(j, "uid", process->uid != (uid_t)-1 ? (int64_t)process->uid : VALUE_MISSING);
	jsonw_key_string(j, "command", process->command);
	jsonw_key_string(j, "state", state);
	jsonw_key_bool(j, "is_target", process->is_target);
	jsonw_key_bool(j, "is_wattle", process->is_own);
	jsonw_key_bool(j, "has_ended", process->is_gone);
	jsonw_key_double(j, "power_w", process->power_w);
	jsonw_key_double(j, "cpu_w", process->cpu_w);
	jsonw_key_double(j, "dram_w", process->dram_w);
	jsonw_key_double(j, "gpu_w", process->gpu_w);
	jsonw_key_double(j, "energy_j", process->energy_j);
	jsonw_key_double(j, "cpu_cores", process->cpu_cores);
	jsonw_key_double(j, "cpu_s", value_to_double(process->cpu_ns, 1e-9));
	jsonw_key_i64(j, "rss_bytes", process->rss_bytes);
	jsonw_key_i64(j, "threads", process->threads);
	jsonw_key_double(j, "gpu_percent", process->gpu_percent);
	jsonw_key_i64(j, "gpu_memory_bytes", process->gpu_memory_bytes);
	jsonw_end_object(j);
}

static void processes(const struct view *view, struct jsonw *j)
{
	size_t n = 0;
	const struct now_process **ranked = view_ranked(view->now, &n);
	jsonw_key(j, "processes");
	jsonw_begin_array(j);
	for (size_t i = 0; ranked != NULL && i < n; i++)
		process(ranked[i], j);
	jsonw_end_array(j);
	free(ranked);
}

static void machine(const struct view *view, struct jsonw *j)
{
	const struct now *now = view->now;
	jsonw_key_i64(j, "cores", now->cores);
	jsonw_key_double(j, "busy_cores", now->busy_cores);
	jsonw_key_i64(j, "memory_total_bytes", now->memory_total_bytes);
	jsonw_key_i64(j, "memory_used_bytes", now->memory_used_bytes);
	jsonw_key_i64(j, "processes_seen", now->processes_seen);
	jsonw_key_i64(j, "threads_seen", now->threads_seen);
	jsonw_key(j, "self");
	jsonw_begin_object(j);
	jsonw_key_double(j, "cpu_percent", now->own_cpu_percent);
	jsonw_key_i64(j, "rss_bytes", now->own_rss_bytes);
	jsonw_end_object(j);
}

void view_json(const struct view *view, bool trail, struct buf *out)
{
	const struct now *now = view->now;
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-now/1");
	jsonw_key_string(&j, "version", WATTLE_VERSION);
	jsonw_key_string(&j, "host", view->host);
	jsonw_key_i64(&j, "look", (int64_t)view->look);
	key_time(&j, "time", now->wall_ns);
	jsonw_key_double(&j, "unix_s", (double)(now->wall_ns / NS_PER_MS) / 1e3);
	jsonw_key_double(&j, "dt_s", now->dt_s);
	jsonw_key_double(&j, "interval_s", (double)view->interval_ns / 1e9);
	jsonw_key_double(&j, "up_s", (double)view->up_ns / 1e9);
	jsonw_key_string(&j, "problem", now->problem);
	jsonw_key_double(&j, "total_w", now->total_w);
	jsonw_key_double(&j, "total_j", joules(now->total_energy_uj));
	jsonw_key_string(&j, "provenance", now->problem == NULL ? provenance_name(now->provenance) : NULL);
	ledger(view, &j);
	machine(view, &j);
	jsonw_key(&j, "domains");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < now->n_domains; i++)
		domain(view, &now->domains[i], &j);
	jsonw_end_array(&j);
	processes(view, &j);
	if (trail) {
		jsonw_key(&j, "trail");
		jsonw_begin_object(&j);
		view_trail(view, 0, &j);
		jsonw_end_object(&j);
	}
	jsonw_end_object(&j);
	buf_char(out, '\n');
}
