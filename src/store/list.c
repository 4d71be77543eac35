#include "store/list.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "store/output_file.h"
#include "store/sql.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* One file */

static const char *fact(sqlite3_stmt *facts, const char *key, struct arena *arena)
{
	sql_bind_text(facts, 1, key);
	const char *value = sqlite3_step(facts) == SQLITE_ROW ? sql_text(facts, 0, arena) : NULL;
	sqlite3_reset(facts);
	return value;
}

static int64_t number(const char *text)
{
	int64_t value;
	return text != NULL && num_parse_i64(text, &value) == 0 ? value : VALUE_MISSING;
}

static int read_metadata(sqlite3 *db, struct arena *arena, struct run_listing *listing)
{
	sqlite3_stmt *facts = NULL;
	int r = sqlite3_prepare_v2(db, "SELECT value FROM run WHERE key = ?", -1, &facts, NULL);
	if (r == SQLITE_OK) {
		listing->id = fact(facts, "id", arena);
		listing->host = fact(facts, "host", arena);
		listing->command_json = fact(facts, "command", arena);
		listing->label = fact(facts, "label", arena);
		listing->user = fact(facts, "user", arena);
		listing->job_id = fact(facts, "job_id", arena);
		listing->job_step = fact(facts, "job_step", arena);
		listing->rank = number(fact(facts, "rank", arena));
		listing->interval_ns = number(fact(facts, "interval_ns", arena));
		const char *complete = fact(facts, "complete", arena);
		listing->complete = complete != NULL && strcmp(complete, "true") == 0;
	}
	sqlite3_finalize(facts);
	return r;
}

// An open segment ends at its last sample, which the primary key finds without reading the others.
static const char segments_sql[] =
	"SELECT count(*), min(wall_start_ns), sum(max(0, coalesce(end_ns, "
	"(SELECT max(t_ns) FROM sample WHERE t_ns < coalesce((SELECT min(later.start_ns) FROM segment later "
	"WHERE later.id > s.id), 9223372036854775807)), start_ns) - start_ns)), "
	"sum(samples), (SELECT exit_code FROM segment ORDER BY id DESC LIMIT 1) FROM segment s";

static int read_segments(sqlite3 *db, struct run_listing *listing)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(db, segments_sql, -1, &s, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_step(s);
	if (r == SQLITE_ROW) {
		listing->segments = sql_i64(s, 0);
		listing->wall_start_ns = sql_i64(s, 1);
		listing->duration_s = value_to_double(sql_i64(s, 2), 1e-9);
		listing->samples = listing->complete ? sql_i64(s, 3) : VALUE_MISSING;
		listing->exit_code = sql_i64(s, 4);
		r = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return r;
}

static void read_listing(struct arena *arena, struct run_listing *listing)
{
	sqlite3 *db = NULL;
	struct wattle_error error = {0};
	if (sql_open_reader(listing->path, &db, &error) == 0 &&
		(read_metadata(db, arena, listing) != SQLITE_OK || read_segments(db, listing) != SQLITE_OK))
		sql_fail(db, listing->path, &error);
	sqlite3_close(db);
	listing->problem = error.code != 0 ? arena_text(arena, error.text) : NULL;
}

/* The folder */

struct names {
	char **paths; // owned; each path is in the arena
	size_t n, capacity;
};

static int add_name(struct names *names, char *path)
{
	if (path == NULL)
		return -ENOMEM;
	char **larger = array_reserve(names->paths, names->n, &names->capacity, sizeof(*larger), 64);
	if (larger == NULL)
		return -ENOMEM;
	names->paths = larger;
	names->paths[names->n++] = path;
	return 0;
}

// Whether this is a run file, including unreadable ones; files of other kinds are not problems.
static bool is_run_file(const char *path, const char **ret_problem, struct arena *arena)
{
	struct wattle_error error = {0};
	*ret_problem = NULL;
	int r = file_type_check_run(path, &error);
	if (r == -ENOTSUP)
		*ret_problem = arena_text(arena, error.text);
	return r == 0 || r == -ENOTSUP;
}

static char *join(const char *folder, const char *name, struct arena *arena)
{
	return arena_printf(arena, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
}

static int find_files(const char *folder, struct arena *arena, struct names *names, struct wattle_error *reterr)
{
	wattle_cleanup_dir DIR *dir = opendir(folder[0] != '\0' ? folder : ".");
	if (dir == NULL)
		return error_set(reterr, -errno, "%s: %s", folder, strerror(errno));
	int r = 0;
	for (const struct dirent *entry; r == 0 && (entry = readdir(dir)) != NULL;) {
		// Hidden files are still being written; links to folders and pipes fail the probe below.
		bool wanted = entry->d_name[0] != '.' && entry->d_type != DT_DIR;
		r = wanted ? add_name(names, join(folder[0] != '\0' ? folder : ".", entry->d_name, arena)) : 0;
	}
	return r < 0 ? error_set(reterr, r, "%s: out of memory", folder) : 0;
}

static int by_start(const void *left, const void *right)
{
	const struct run_listing *a = left, *b = right;
	if (value_ok(a->wall_start_ns) != value_ok(b->wall_start_ns))
		return value_ok(a->wall_start_ns) ? -1 : 1;
	if (a->wall_start_ns != b->wall_start_ns)
		return a->wall_start_ns < b->wall_start_ns ? -1 : 1;
	return strcmp(a->path, b->path);
}

static int read_listings(const struct names *names, struct arena *arena, struct run_listing **ret_listings,
	size_t *ret_n)
{
	struct run_listing *listings = arena_alloc(arena, names->n, sizeof(*listings));
	if (listings == NULL)
		return -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; i < names->n; i++) {
		const char *problem;
		if (!is_run_file(names->paths[i], &problem, arena))
			continue;
		listings[n] = (struct run_listing){.path = names->paths[i],
			.wall_start_ns = VALUE_MISSING,
			.duration_s = (double)NAN,
			.segments = VALUE_MISSING,
			.samples = VALUE_MISSING,
			.exit_code = VALUE_MISSING,
			.energy_j = (double)NAN,
			.error_j = (double)NAN,
			.rank = VALUE_MISSING,
			.interval_ns = VALUE_MISSING,
			.problem = problem};
		if (problem == NULL)
			read_listing(arena, &listings[n]);
		n++;
	}
	qsort(listings, n, sizeof(*listings), by_start);
	*ret_listings = listings;
	*ret_n = n;
	return 0;
}

int list_runs(const char *folder, struct arena *arena, struct run_listing **ret_listings, size_t *ret_n,
	struct wattle_error *reterr)
{
	struct names names = {0};
	int r = find_files(folder, arena, &names, reterr);
	if (r == 0 && (r = read_listings(&names, arena, ret_listings, ret_n)) < 0)
		error_set(reterr, r, "%s: out of memory", folder);
	free(names.paths);
	return r;
}

static bool is_text(const char *wanted, const char *text)
{
	return wanted == NULL || (text != NULL && strcmp(wanted, text) == 0);
}

bool list_accepts(const struct list_choice *choice, const struct run_listing *listing)
{
	bool any_time = !value_ok(choice->since_wall_ns) && !value_ok(choice->until_wall_ns);
	if (!is_text(choice->user, listing->user) || !is_text(choice->job_id, listing->job_id))
		return false;
	if (any_time)
		return true;
	return value_ok(listing->wall_start_ns) &&
		(!value_ok(choice->since_wall_ns) || listing->wall_start_ns >= choice->since_wall_ns) &&
		(!value_ok(choice->until_wall_ns) || listing->wall_start_ns < choice->until_wall_ns);
}
