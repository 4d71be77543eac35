/* Owner of an exit record: records of the whole machine arrive, and parents identify ours. */
#include "process/tree.h"

#include "base/util.h"
#include "rows.h"

#include <sys/types.h>
#include <unistd.h>

enum { RECORDS = 8 };

struct event {
	int pid, ppid;
};

/* The tree knows two living processes: this one (the root), and its parent in place of all other programs. */
#define ROOT (-1)
#define OTHER 1

static const struct row {
	const char *teaches;
	struct event events[RECORDS];
	int unseen;
} rows[] = {
	{"child of the root: ours", {{7001, ROOT}}, 1},
	{"child of another program: not ours", {{7001, OTHER}}, 0},
	{"grandchild whose parent ended first: ours through the parent", {{7001, ROOT}, {7002, 7001}}, 2},
	{"grandchild that ends before its parent: waits for the parent's record", {{7002, 7001}, {7001, ROOT}}, 2},
	{"three generations, youngest first: ours", {{7003, 7002}, {7002, 7001}, {7001, ROOT}}, 3},
	{"generations of another program: not ours", {{7003, 7002}, {7002, 7001}, {7001, OTHER}}, 0},
	{"the root's own record: not an unseen process", {{ROOT, OTHER}}, 0},
};

static void count(void *data, const struct exit_record *record)
{
	(*(int *)data)++;
}

static int real_pid(int pid)
{
	return pid == ROOT ? getpid() : pid;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	struct tree tree;
	assert_int_equal(tree_open(&tree, &env, getpid(), 0), 0);
	int found = 0;
	struct exits exits = {.fd = -1, .found = count, .data = &found};
	for (size_t i = 0; i < RECORDS && row->events[i].pid != 0; i++) {
		struct exit_record record = {.pid = real_pid(row->events[i].pid),
			.ppid = real_pid(row->events[i].ppid),
			.max_rss_bytes = 4096};
		exits_add(&exits, &tree, &record);
	}
	assert_int_equal(exits.n_unseen, row->unseen);
	assert_int_equal(found, row->unseen);
	tree_close(&tree);
	env_close(&env);
}

static void pending_gives_way(void **state)
{
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	struct tree tree;
	assert_int_equal(tree_open(&tree, &env, getpid(), 0), 0);
	int found = 0;
	struct exits exits = {.fd = -1, .found = count, .data = &found};
	for (int i = 0; i < 10 * EXITS_PENDING; i++) // a busy machine: children of other programs, never resolved
		exits_add(&exits, &tree, &(struct exit_record){.pid = 10000 + i, .ppid = 2});
	exits_add(&exits, &tree, &(struct exit_record){.pid = 7002, .ppid = 7001});
	exits_add(&exits, &tree, &(struct exit_record){.pid = 7001, .ppid = getpid()});
	assert_int_equal(found, 2);
	tree_close(&tree);
	env_close(&env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "waiting list full of other programs' records: ours are still recorded",
		pending_gives_way);
	return rows_run(&tests, "exits");
}
