/* Many hosts at once into one PostgreSQL, through the encoder and the functions of wattle's uploader.
 *
 *	scale URL [hosts=1000] [seconds=600] [hz=10] [batch=2] [workers=2] [connections=0] [wait=0]
 *
 * seconds and batch (the contents of a transaction) are in simulated time: the server gets as much as it accepts. connections: of all
 * workers together, 0 for one each; a real fleet has one for each host. wait=1: commits wait for the disk.
 * Prints the sent amounts, as JSON. */
#include "base/num.h"
#include "base/util.h"
#include "host.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, SQL_CEILING = 1 << 16, JSON_CEILING = 1 << 20 };

struct sent { // by one worker
	int64_t rows, bytes, transactions;
	double cpu_s, slowest_s;
};

struct plan {
	const char *url;
	struct fleet fleet;
	int64_t batch_s, workers, connections, wait;
	struct sent *sent; // shared with the workers
};

struct worker {
	const struct plan *plan;
	struct sent *sent;
	int64_t number;
	struct pg **connections;
	int64_t n_connections;
	struct host_table tables[2]; // LAYOUT_SAMPLE, LAYOUT_DEVICE_SAMPLE
	struct buf copy_sql[2];
	struct copy rows[2];
	struct buf json;
};

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check(int r, const struct wattle_error *error)
{
	if (r >= 0)
		return;
	fprintf(stderr, "scale: %s\n", error->text);
	exit(1);
}

static void call(struct pg *pg, const char *sql, const char *first, const char *second)
{
	struct wattle_error error = {0};
	check(pg_query(pg, sql, (const char *const[]){first, second}, second != NULL ? 2 : 1, NULL, &error), &error);
}

static void execute(struct pg *pg, const char *sql)
{
	struct wattle_error error = {0};
	check(pg_exec(pg, sql, &error), &error);
}

static void put(struct worker *worker, struct pg *pg, const struct host *host,
	void (*write)(const struct host *, const struct fleet *, struct jsonw *))
{
	struct jsonw j;
	buf_clear(&worker->json);
	jsonw_init(&j, &worker->json, false);
	write(host, &worker->plan->fleet, &j);
	call(pg, PG_CALL_PUT, host->run, worker->json.data);
}

static void copy_rows(struct worker *worker, struct pg *pg, int table)
{
	struct wattle_error error = {0};
	struct copy *rows = &worker->rows[table];
	copy_end(rows);
	check(pg_copy_begin(pg, worker->copy_sql[table].data, &error), &error);
	check(pg_copy_data(pg, rows->bytes, rows->size, &error), &error);
	check(pg_copy_end(pg, &error), &error);
	worker->sent->bytes += (int64_t)rows->size;
	copy_clear(rows);
}

static void mark(struct worker *worker, struct pg *pg, const struct host *host, int64_t to)
{
	int64_t t_ns = host_t_ns(host, &worker->plan->fleet, to - 1);
	struct jsonw j;
	buf_clear(&worker->json);
	jsonw_init(&j, &worker->json, false);
	jsonw_begin_array(&j);
	for (int table = LAYOUT_SAMPLE; table <= LAYOUT_DEVICE_SAMPLE; table++) {
		jsonw_begin_object(&j);
		jsonw_key_string(&j, "table_name", worker->tables[table].name);
		jsonw_key_i64(&j, "mark", t_ns);
		jsonw_key_i64(&j, "n", to * (table == LAYOUT_SAMPLE ? 1 : HOST_DEVICES));
		jsonw_end_object(&j);
	}
	jsonw_end_array(&j);
	call(pg, PG_CALL_MARK, host->run, worker->json.data);
}

// One transaction, as an uploader makes it.
static void copy_batch(struct worker *worker, const struct host *host, struct pg *pg, int64_t from, int64_t to)
{
	const struct fleet *fleet = &worker->plan->fleet;
	bool is_last = to == fleet->seconds * fleet->hz;
	double begin_s = now_s();
	execute(pg, worker->plan->wait || is_last ? "BEGIN" : "BEGIN; SET LOCAL synchronous_commit = off");
	call(pg, PG_CALL_BEGIN, host->run, NULL);
	worker->sent->rows += host_samples(host, fleet, &worker->tables[LAYOUT_SAMPLE], from, to,
		&worker->rows[LAYOUT_SAMPLE]);
	worker->sent->rows += host_device_samples(host, fleet, &worker->tables[LAYOUT_DEVICE_SAMPLE], from, to,
		&worker->rows[LAYOUT_DEVICE_SAMPLE]);
	copy_rows(worker, pg, LAYOUT_SAMPLE);
	copy_rows(worker, pg, LAYOUT_DEVICE_SAMPLE);
	if (from == 0)
		put(worker, pg, host, host_header);
	if (is_last)
		put(worker, pg, host, host_footer);
	mark(worker, pg, host, to);
	execute(pg, "COMMIT");
	worker->sent->transactions++;
	worker->sent->slowest_s = fmax(worker->sent->slowest_s, now_s() - begin_s);
}

static void open_connections(struct worker *worker)
{
	const struct plan *plan = worker->plan;
	struct wattle_error error = {0};
	worker->n_connections = plan->connections > plan->workers ? plan->connections / plan->workers : 1;
	worker->connections = calloc_array((size_t)worker->n_connections, sizeof(*worker->connections));
	for (int64_t i = 0; i < worker->n_connections; i++)
		check(pg_open(plan->url, &worker->connections[i], &error), &error);
	static struct layout_server servers[2]; // the tables keep their names
	for (int table = LAYOUT_SAMPLE; table <= LAYOUT_DEVICE_SAMPLE; table++) {
		check(layout_query(worker->connections[0], (enum layout_table)table, &servers[table], &error), &error);
		host_table_init(&worker->tables[table], (enum layout_table)table, &servers[table]);
		buf_init(&worker->copy_sql[table], SQL_CEILING);
		host_table_copy_sql(&worker->tables[table], &worker->copy_sql[table]);
		copy_init(&worker->rows[table]);
	}
	buf_init(&worker->json, JSON_CEILING);
}

static void work(struct worker *worker)
{
	const struct plan *plan = worker->plan;
	int64_t ticks = plan->fleet.seconds * plan->fleet.hz, step = plan->batch_s * plan->fleet.hz;
	open_connections(worker);
	for (int64_t from = 0; from < ticks; from += step)
		for (int64_t number = worker->number, turn = 0; number < plan->fleet.hosts;
			number += plan->workers, turn++) {
			struct host host;
			host_init(&host, number);
			copy_batch(worker, &host, worker->connections[turn % worker->n_connections], from,
				from + step < ticks ? from + step : ticks);
		}
	for (int64_t i = 0; i < worker->n_connections; i++)
		pg_close(worker->connections[i]);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	worker->sent->cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void day_of(int64_t wall_ns, char ret_day[16])
{
	time_t seconds = wall_ns / NS_PER_S;
	struct tm tm;
	gmtime_r(&seconds, &tm);
	strftime(ret_day, 16, "%Y-%m-%d", &tm);
}

static void make_tables(const struct plan *plan)
{
	struct wattle_error error = {0};
	struct pg *pg = NULL;
	char first[16], last[16];
	day_of(plan->fleet.wall_start_ns, first);
	day_of(plan->fleet.wall_start_ns + plan->fleet.seconds * NS_PER_S, last);
	check(pg_open(plan->url, &pg, &error), &error);
	check(pg_store_ensure(pg, NULL, &error), &error);
	call(pg, PG_CALL_DAYS, first, last);
	pg_close(pg);
}

static bool run_workers(const struct plan *plan)
{
	bool good = true;
	for (int64_t i = 0; i < plan->workers; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			work(&(struct worker){.plan = plan, .sent = &plan->sent[i], .number = i});
			_exit(0);
		}
		good = good && pid > 0;
	}
	int status;
	while (wait(&status) > 0)
		good = good && status == 0;
	return good;
}

static void tell(const struct plan *plan, double seconds)
{
	struct sent all = {0};
	for (int64_t i = 0; i < plan->workers; i++) {
		all.rows += plan->sent[i].rows;
		all.bytes += plan->sent[i].bytes;
		all.transactions += plan->sent[i].transactions;
		all.cpu_s += plan->sent[i].cpu_s;
		all.slowest_s = fmax(all.slowest_s, plan->sent[i].slowest_s);
	}
	printf("{\"rows\": %" PRId64 ", \"bytes\": %" PRId64 ", \"transactions\": %" PRId64
	       ", \"seconds\": %.3f, \"client_cpu_s\": %.3f, \"slowest_s\": %.3f, \"job_0_j\": %.6f}\n",
		all.rows, all.bytes, all.transactions, seconds, all.cpu_s, all.slowest_s, host_job_j(&plan->fleet, 0));
}

static int parse(int argc, char **argv, struct plan *plan)
{
	const struct {
		const char *name;
		int64_t *value, least, most;
	} options[] = {{"hosts", &plan->fleet.hosts, 1, 1000000}, {"seconds", &plan->fleet.seconds, 1, 86400},
		{"hz", &plan->fleet.hz, 1, 1000}, {"batch", &plan->batch_s, 1, 3600},
		{"workers", &plan->workers, 1, WORKERS_MAX}, {"connections", &plan->connections, 0, 100000},
		{"wait", &plan->wait, 0, 1}};
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		int64_t value;
		size_t k = 0;
		while (k < ARRAY_SIZE(options) &&
			(equals == NULL || strlen(options[k].name) != (size_t)(equals - argv[i]) ||
				strncmp(options[k].name, argv[i], strlen(options[k].name)) != 0))
			k++;
		if (k == ARRAY_SIZE(options) || num_parse_i64(equals + 1, &value) < 0 || value < options[k].least ||
			value > options[k].most)
			return -EINVAL;
		*options[k].value = value;
	}
	return argc >= 2 && 1000 % plan->fleet.hz == 0 ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct plan plan = {.fleet = {.hosts = 1000, .hz = 10, .seconds = 600}, .batch_s = 2, .workers = 2};
	if (parse(argc, argv, &plan) < 0) {
		fprintf(stderr,
			"usage: scale URL [hosts=N] [seconds=N] [hz=N (a divisor of 1000)] [batch=SECONDS] [workers=N] "
			"[connections=N] [wait=0|1]\n");
		return 2;
	}
	plan.url = argv[1];
	plan.fleet.wall_start_ns = (time(NULL) - plan.fleet.seconds) * NS_PER_S;
	plan.sent = mmap(NULL, WORKERS_MAX * sizeof(*plan.sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		0);
	if (plan.sent == MAP_FAILED)
		return 1;
	make_tables(&plan);
	double begin_s = now_s();
	if (!run_workers(&plan))
		return 1;
	tell(&plan, now_s() - begin_s);
	return 0;
}
