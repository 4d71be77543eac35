/* The tables of a profile, made when the first profile of a run file begins. */
#include "store/run_write.h"

#include "base/util.h"

#include <assert.h>
#include <stdio.h>

enum { INSERT_PROFILE, INSERT_MODULE, INSERT_STACK, INSERT_SAMPLE, INSERT_SYMBOL, INSERTS };

static const char tables[] =
	"CREATE TABLE IF NOT EXISTS profile (segment INTEGER PRIMARY KEY NOT NULL, event TEXT, hz INTEGER, samples INTEGER, "
	"lost INTEGER);"
	"CREATE TABLE IF NOT EXISTS profile_module (id INTEGER PRIMARY KEY NOT NULL, path TEXT, build_id TEXT, inode INTEGER, "
	"size_bytes INTEGER, mtime_ns INTEGER);"
	"CREATE TABLE IF NOT EXISTS profile_stack (id INTEGER PRIMARY KEY NOT NULL, parent INTEGER, module INTEGER, "
	"frame_offset INTEGER);"
	"CREATE TABLE IF NOT EXISTS profile_sample (t_ns INTEGER, samples BLOB);"
	"CREATE TABLE IF NOT EXISTS profile_symbol (module INTEGER, begin INTEGER, size INTEGER, name TEXT);";

// OR REPLACE: a delivery is repeated after a failure of unknown extent.
static const char *const sources[INSERTS] = {
	[INSERT_PROFILE] = "INSERT OR REPLACE INTO profile (segment, event, hz, samples, lost) VALUES (?, ?, ?, ?, ?)",
	[INSERT_MODULE] = ("INSERT OR REPLACE INTO profile_module (id, path, build_id, inode, size_bytes, mtime_ns) "
			   "VALUES (?, ?, ?, ?, ?, ?)"),
	[INSERT_STACK] = "INSERT OR REPLACE INTO profile_stack (id, parent, module, frame_offset) VALUES (?, ?, ?, ?)",
	[INSERT_SAMPLE] = "INSERT INTO profile_sample (t_ns, samples) VALUES (?, ?)",
	[INSERT_SYMBOL] = "INSERT INTO profile_symbol (module, begin, size, name) VALUES (?, ?, ?, ?)",
};

static int open_tables(struct run_profile *profile, sqlite3 *db, int64_t segment, int64_t shift_ns)
{
	static_assert(ARRAY_SIZE(profile->statements) == INSERTS, "a statement for each table");
	int r = sql_exec(db, tables);
	for (size_t i = 0; r == SQLITE_OK && i < INSERTS; i++)
		r = sqlite3_prepare_v3(db, sources[i], -1, SQLITE_PREPARE_PERSISTENT, &profile->statements[i], NULL);
	if (r != SQLITE_OK)
		return r;
	profile->segment = segment;
	profile->shift_ns = shift_ns;
	profile->module_offset = sql_read_i64(db, "SELECT max(id) FROM profile_module", 0) + 1;
	profile->node_offset = sql_read_i64(db, "SELECT max(id) FROM profile_stack", 0) + 1;
	profile->db = db;
	return SQLITE_OK;
}

static int write_profile(struct run_profile *profile, const struct store_profile *rows)
{
	sqlite3_stmt *insert = profile->statements[INSERT_PROFILE];
	sqlite3_bind_int64(insert, 1, profile->segment);
	sql_bind_text(insert, 2, rows->event);
	sqlite3_bind_int64(insert, 3, rows->hz);
	sqlite3_bind_int64(insert, 4, rows->n_samples);
	sqlite3_bind_int64(insert, 5, rows->n_lost);
	return sql_run(insert);
}

static int write_module(struct run_profile *profile, int64_t id, const struct store_profile_module *module)
{
	sqlite3_stmt *insert = profile->statements[INSERT_MODULE];
	char build_id[2 * PROFILE_BUILD_ID_SIZE + 1] = "";
	for (size_t i = 0; i < module->build_id_size; i++)
		snprintf(build_id + 2 * i, 3, "%02x", module->build_id[i]);
	sqlite3_bind_int64(insert, 1, id);
	sql_bind_text(insert, 2, module->path);
	sql_bind_name(insert, 3, build_id);
	sql_bind_i64(insert, 4, module->inode);
	sql_bind_i64(insert, 5, module->size_bytes);
	sql_bind_i64(insert, 6, module->mtime_ns);
	return sql_run(insert);
}

static int write_node(struct run_profile *profile, int64_t id, const struct store_profile_node *node)
{
	sqlite3_stmt *insert = profile->statements[INSERT_STACK];
	sqlite3_bind_int64(insert, 1, id);
	sql_bind_i64(insert, 2,
		node->parent != PROFILE_NO_PARENT ? (int64_t)node->parent + profile->node_offset : VALUE_MISSING);
	sqlite3_bind_int64(insert, 3, node->module + profile->module_offset);
	sqlite3_bind_int64(insert, 4, (int64_t)node->offset);
	return sql_run(insert);
}

static void add_varint(struct buf *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		buf_char(out, (char)(value | 0x80));
	buf_char(out, (char)value);
}

/* Each sample is four varints (LEB128): time since the sample before it, or since the row's t_ns; thread; profile_stack.id;
 * weight, 0: as the sample before it. That takes 9 bytes in place of 30 for a row of its own. */
static int write_samples(struct run_profile *profile, const struct store_profile *rows)
{
	enum { BATCH = 4096, SAMPLE_BYTES_MAX = 40 };
	int r = SQLITE_OK;
	for (size_t first = 0, end; r == SQLITE_OK && first < rows->n_delivered; first = end) {
		struct buf bytes;
		buf_init(&bytes, (size_t)BATCH * SAMPLE_BYTES_MAX);
		end = first + BATCH < rows->n_delivered ? first + BATCH : rows->n_delivered;
		const struct store_profile_sample *before = NULL;
		for (size_t i = first; i < end; i++) {
			const struct store_profile_sample *sample = &rows->samples[i];
			add_varint(&bytes, before != NULL ? (uint64_t)(sample->t_ns - before->t_ns) : 0);
			add_varint(&bytes, (uint64_t)(uint32_t)sample->tid);
			add_varint(&bytes, (uint64_t)(sample->stack + profile->node_offset));
			add_varint(&bytes, before != NULL && sample->weight == before->weight ? 0 : sample->weight);
			before = sample;
		}
		sqlite3_stmt *insert = profile->statements[INSERT_SAMPLE];
		sqlite3_bind_int64(insert, 1, rows->samples[first].t_ns + profile->shift_ns);
		r = bytes.failed != 0 ? SQLITE_NOMEM
				      : sqlite3_bind_blob64(insert, 2, bytes.data, bytes.size, SQLITE_TRANSIENT);
		if (r == SQLITE_OK)
			r = sql_run(insert);
		buf_finish(&bytes);
	}
	return r;
}

static int write_symbol(struct run_profile *profile, const struct store_profile_symbol *symbol)
{
	sqlite3_stmt *insert = profile->statements[INSERT_SYMBOL];
	sqlite3_bind_int64(insert, 1, symbol->module + profile->module_offset);
	sqlite3_bind_int64(insert, 2, (int64_t)symbol->begin);
	sqlite3_bind_int64(insert, 3, (int64_t)symbol->size);
	sql_bind_text(insert, 4, symbol->name);
	return sql_run(insert);
}

int run_profile_write(struct run_profile *profile, sqlite3 *db, int64_t segment, int64_t shift_ns,
	const struct store_profile *rows)
{
	int r = profile->db == NULL ? open_tables(profile, db, segment, shift_ns) : SQLITE_OK;
	if (r == SQLITE_OK)
		r = write_profile(profile, rows);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_modules; i++)
		r = write_module(profile, rows->first_module + (int64_t)i + profile->module_offset, &rows->modules[i]);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_nodes; i++)
		r = write_node(profile, rows->first_node + (int64_t)i + profile->node_offset, &rows->nodes[i]);
	if (r == SQLITE_OK)
		r = write_samples(profile, rows);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_symbols; i++)
		r = write_symbol(profile, &rows->symbols[i]);
	return r;
}

void run_profile_close(struct run_profile *profile)
{
	for (size_t i = 0; i < ARRAY_SIZE(profile->statements); i++)
		sqlite3_finalize(profile->statements[i]);
	*profile = (struct run_profile){0};
}
