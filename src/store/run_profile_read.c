/* Reads the tables of a profile. The file is untrusted: indices are checked, and the parent of a node precedes it, so that a
 * walk along the callers ends. */
#include "store/run.h"

#include "base/arena.h"
#include "base/search.h"
#include "base/util.h"
#include "store/output_file.h"
#include "store/sql.h"

#include <errno.h>

struct reading {
	sqlite3 *db;
	struct arena *arena;
	struct run_profile_data *profile;
	int64_t *module_ids, *node_ids; // ascending
	size_t modules_capacity, nodes_capacity, samples_capacity, symbols_capacity;
};

typedef int take_row(struct reading *reading, sqlite3_stmt *row);

// SQLite result code; SQLITE_NOMEM also from take.
static int read_rows(struct reading *reading, const char *sql, take_row *take)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(reading->db, sql, -1, &s, NULL);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW)
		r = take(reading, s);
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

static size_t count(struct reading *reading, const char *sql)
{
	int64_t n = sql_read_i64(reading->db, sql, 0);
	return n > 0 && n < UINT32_MAX ? (size_t)n : 0;
}

// Index of an id; n: not found.
static size_t index_of(const int64_t *ids, size_t n, int64_t id)
{
	size_t i = search_i64(ids, n, id);
	return i < n && ids[i] == id ? i : n;
}

static int take_profile(struct reading *reading, sqlite3_stmt *row)
{
	struct run_profile_data *profile = reading->profile;
	int64_t lost = sql_i64(row, 2);
	profile->event = sql_text(row, 0, reading->arena);
	profile->hz = sql_i64(row, 1);
	profile->n_lost += value_ok(lost) && lost > 0 && lost < INT32_MAX ? lost : 0;
	return profile->event != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int take_module(struct reading *reading, sqlite3_stmt *row)
{
	struct run_profile_data *profile = reading->profile;
	const char *path = sql_text(row, 1, reading->arena);
	if (profile->n_modules == reading->modules_capacity)
		return SQLITE_CORRUPT;
	reading->module_ids[profile->n_modules] = sqlite3_column_int64(row, 0);
	profile->modules[profile->n_modules++] = (struct run_profile_module){
		.path = path != NULL ? path : "[unknown]",
		.build_id = sql_text(row, 2, reading->arena),
		.inode = sql_i64(row, 3),
		.size_bytes = sql_i64(row, 4),
		.mtime_ns = sql_i64(row, 5),
	};
	return SQLITE_OK;
}

static int take_node(struct reading *reading, sqlite3_stmt *row)
{
	struct run_profile_data *profile = reading->profile;
	size_t n = profile->n_nodes,
	       module = index_of(reading->module_ids, profile->n_modules, sqlite3_column_int64(row, 2));
	size_t parent = index_of(reading->node_ids, n, sqlite3_column_int64(row, 1));
	bool has_parent = sqlite3_column_type(row, 1) == SQLITE_INTEGER;
	if (n == reading->nodes_capacity || module == profile->n_modules || (has_parent && parent == n))
		return SQLITE_CORRUPT;
	reading->node_ids[n] = sqlite3_column_int64(row, 0);
	profile->nodes[n] = (struct run_profile_node){.offset = (uint64_t)sqlite3_column_int64(row, 3),
		.module = (uint32_t)module,
		.parent = has_parent ? (uint32_t)parent : RUN_PROFILE_NO_PARENT};
	profile->n_nodes++;
	return SQLITE_OK;
}

static bool take_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned int shift = 0; *at < end && shift < 64; shift += 7) {
		unsigned char byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static int add_sample(struct reading *reading, struct run_profile_sample sample)
{
	struct run_profile_data *profile = reading->profile;
	if (profile->n_samples == reading->samples_capacity)
		return SQLITE_CORRUPT;
	profile->samples[profile->n_samples++] = sample;
	return SQLITE_OK;
}

static int take_samples(struct reading *reading, sqlite3_stmt *row)
{
	const unsigned char *at = sqlite3_column_blob(row, 1),
			    *end = at + (at != NULL ? sqlite3_column_bytes(row, 1) : 0);
	int64_t t_ns = sql_i64(row, 0);
	uint64_t dt_ns, tid, stack, weight, last_weight = 0;
	int r = SQLITE_OK;
	while (r == SQLITE_OK && at != NULL && at < end) {
		if (!take_varint(&at, end, &dt_ns) || !take_varint(&at, end, &tid) || !take_varint(&at, end, &stack) ||
			!take_varint(&at, end, &weight) || !value_ok(t_ns) || dt_ns > INT64_C(1) << 61 ||
			stack > INT64_MAX)
			return SQLITE_CORRUPT;
		t_ns = sql_in_range(t_ns + (int64_t)dt_ns);
		last_weight = weight != 0 ? weight : last_weight;
		size_t node = index_of(reading->node_ids, reading->profile->n_nodes, (int64_t)stack);
		if (node == reading->profile->n_nodes || !value_ok(t_ns))
			return SQLITE_CORRUPT;
		r = add_sample(reading,
			(struct run_profile_sample){t_ns, (double)last_weight, (int32_t)tid, (uint32_t)node});
	}
	return r;
}

static int take_symbol(struct reading *reading, sqlite3_stmt *row)
{
	struct run_profile_data *profile = reading->profile;
	size_t module = index_of(reading->module_ids, profile->n_modules, sqlite3_column_int64(row, 0));
	const char *name = sql_text(row, 3, reading->arena);
	if (profile->n_symbols == reading->symbols_capacity || module == profile->n_modules || name == NULL)
		return SQLITE_CORRUPT;
	profile->symbols[profile->n_symbols++] = (struct run_profile_symbol){(uint32_t)module,
		(uint64_t)sqlite3_column_int64(row, 1), (uint64_t)sqlite3_column_int64(row, 2), name};
	return SQLITE_OK;
}

static int by_time(const void *a, const void *b)
{
	const struct run_profile_sample *x = a, *y = b;
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int by_begin(const void *a, const void *b)
{
	const struct run_profile_symbol *x = a, *y = b;
	if (x->module != y->module)
		return x->module > y->module ? 1 : -1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool make_room(struct reading *reading)
{
	struct run_profile_data *profile = reading->profile;
	size_t n_modules = reading->modules_capacity = count(reading, "SELECT count(1) FROM profile_module");
	size_t n_nodes = reading->nodes_capacity = count(reading, "SELECT count(1) FROM profile_stack");
	size_t n_symbols = reading->symbols_capacity = count(reading, "SELECT count(1) FROM profile_symbol");
	// A sample takes four bytes or more.
	reading->samples_capacity = count(reading, "SELECT sum(length(samples)) FROM profile_sample") / 4;
	profile->modules = arena_alloc(reading->arena, n_modules, sizeof(*profile->modules));
	profile->nodes = arena_alloc(reading->arena, n_nodes, sizeof(*profile->nodes));
	profile->samples = arena_alloc(reading->arena, reading->samples_capacity, sizeof(*profile->samples));
	profile->symbols = arena_alloc(reading->arena, n_symbols, sizeof(*profile->symbols));
	reading->module_ids = arena_alloc(reading->arena, n_modules, sizeof(*reading->module_ids));
	reading->node_ids = arena_alloc(reading->arena, n_nodes, sizeof(*reading->node_ids));
	return profile->modules != NULL && profile->nodes != NULL && profile->samples != NULL &&
		profile->symbols != NULL && reading->module_ids != NULL && reading->node_ids != NULL;
}

static int read_profile(struct reading *reading)
{
	struct run_profile_data *profile = reading->profile;
	int r = read_rows(reading, "SELECT event, hz, lost FROM profile ORDER BY segment", take_profile);
	if (r == SQLITE_OK && !make_room(reading))
		return SQLITE_NOMEM;
	if (r == SQLITE_OK)
		r = read_rows(reading,
			"SELECT id, path, build_id, inode, size_bytes, mtime_ns FROM profile_module ORDER BY id",
			take_module);
	if (r == SQLITE_OK)
		r = read_rows(reading, "SELECT id, parent, module, frame_offset FROM profile_stack ORDER BY id",
			take_node);
	if (r == SQLITE_OK)
		r = read_rows(reading, "SELECT t_ns, samples FROM profile_sample ORDER BY rowid", take_samples);
	if (r == SQLITE_OK)
		r = read_rows(reading, "SELECT module, begin, size, name FROM profile_symbol", take_symbol);
	if (r != SQLITE_OK)
		return r;
	qsort(profile->samples, profile->n_samples, sizeof(*profile->samples), by_time);
	qsort(profile->symbols, profile->n_symbols, sizeof(*profile->symbols), by_begin);
	return SQLITE_OK;
}

static bool has_profile(sqlite3 *db)
{
	return sql_read_i64(db,
		       "SELECT count(1) FROM sqlite_schema WHERE type = 'table' AND name IN ('profile', "
		       "'profile_module', 'profile_stack', 'profile_sample', 'profile_symbol')",
		       0) == 5;
}

int run_load_profile(const char *path, struct arena *arena, struct run_profile_data *ret_profile,
	struct wattle_error *reterr)
{
	struct run_profile_data profile = {.hz = VALUE_MISSING};
	struct reading reading = {.arena = arena, .profile = &profile};
	int r = file_type_check_run(path, reterr);
	if (r == 0)
		r = sql_open_reader(path, &reading.db, reterr);
	if (r < 0)
		return r;
	int result = sql_exec(reading.db, "BEGIN"); // one snapshot while a writer continues
	if (result == SQLITE_OK && has_profile(reading.db))
		result = read_profile(&reading);
	if (result == SQLITE_NOMEM)
		r = error_set(reterr, -ENOMEM, "%s: out of memory", path);
	else if (result != SQLITE_OK)
		r = error_set(reterr, -EINVAL, "%s is damaged: its profile: %s", path, sqlite3_errstr(result));
	sqlite3_close(reading.db);
	if (r == 0)
		*ret_profile = profile;
	return r;
}
