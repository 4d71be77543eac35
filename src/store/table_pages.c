#include "store/run_read.h"

#include "base/util.h"
#include "store/schema.h"
#include "store/sql.h"

#include <endian.h>
#include <string.h>

enum {
	FILE_HEADER = 100,
	PAGE_MIN = 512,
	SLACK = 8,      // after a page and a payload: an integer of any size is read as 8 bytes
	DEPTH_MAX = 20, // SQLite's own limit
	INDEX_INTERIOR = 0x02,
	TABLE_INTERIOR = 0x05,
	INDEX_LEAF = 0x0a,
	TABLE_LEAF = 0x0d,
};

struct walk {
	sqlite3_file *file;
	size_t page_size, usable;
	int64_t pages_left;               // page visits left, which bounds cycles; a page with two parents is visited twice
	unsigned char *pages[DEPTH_MAX];  // owned; pages on the path from the root
	unsigned char *payload;           // owned; payload of a record that continues on overflow pages
	int slots[SCHEMA_STORED_COLUMNS]; // by table column: index among the requested columns, -1 none
	size_t n_columns, n_wanted;       // n_columns: up to the last requested one; n_wanted: requested
	bool has_rowid;                   // the first column is the rowid, which precedes the record
	int64_t preset[SCHEMA_STORED_COLUMNS];
	table_pages_take *take;
	void *data;
};

/* ---- numbers ---- */

static size_t be16(const unsigned char *at)
{
	return (size_t)at[0] << 8 | at[1];
}

static uint32_t be32(const unsigned char *at)
{
	return (uint32_t)be16(at) << 16 | (uint32_t)be16(at + 2);
}

// 7 bits per byte, 8 in the ninth. Returns the position after the varint; NULL: past the end.
static const unsigned char *read_varint(const unsigned char *at, const unsigned char *end, uint64_t *ret)
{
	uint64_t value = 0;
	for (int i = 0; at < end && i < 8; i++) {
		value = value << 7 | (*at & 0x7f);
		if (*at++ < 0x80) {
			*ret = value;
			return at;
		}
	}
	if (at == end)
		return NULL;
	*ret = value << 8 | *at;
	return at + 1;
}

/* ---- records ---- */

static const unsigned char sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0}; // by serial type, up to the constant 1

static int64_t integer(uint64_t type, const unsigned char *at)
{
	if (type == 8 || type == 9)
		return (int64_t)type - 8;
	if (type == 0 || type > 6)
		return VALUE_MISSING;
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return sql_in_range((int64_t)be64toh(value) >> (64 - 8 * sizes[type]));
}

static bool take_values(const struct walk *w, const unsigned char *record, const unsigned char *end, int64_t *values)
{
	uint64_t header, type, size;
	const unsigned char *at = read_varint(record, end, &header);
	if (at == NULL || header > (size_t)(end - record))
		return false;
	const unsigned char *types_end = record + header, *body = types_end;
	for (size_t column = 0; column < w->n_columns && at < types_end; column++) {
		type = *at;
		at = type < 0x80 ? at + 1 : read_varint(at, types_end, &type);
		if (at == NULL || type == 10 || type == 11)
			return false;
		if (type == 0) // null: keeps the default
			continue;
		size = type < ARRAY_SIZE(sizes) ? sizes[type] : (type - 12) / 2;
		if (size > (size_t)(end - body))
			return false;
		if (w->slots[column] >= 0)
			values[w->slots[column]] = integer(type, body);
		body += size;
	}
	return true;
}

static int hand_over(const struct walk *w, const unsigned char *record, size_t size, int64_t rowid)
{
	int64_t values[SCHEMA_STORED_COLUMNS];
	for (size_t i = 0; i < w->n_wanted; i++)
		values[i] = w->preset[i];
	if (!take_values(w, record, record + size, values))
		return SQLITE_CORRUPT;
	if (w->has_rowid && w->slots[0] >= 0)
		values[w->slots[0]] = sql_in_range(rowid);
	return w->take(w->data, values);
}

/* ---- pages ---- */

static int read_page(struct walk *w, uint32_t number, unsigned char *page)
{
	if (number == 0 || w->pages_left-- <= 0)
		return SQLITE_CORRUPT;
	int r = w->file->pMethods->xRead(w->file, page, (int)w->page_size,
		(int64_t)(number - 1) * (int64_t)w->page_size);
	return r == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : r;
}

// Reads a record with `local` bytes on its own page and the rest on a chain of overflow pages.
static int read_overflow(struct walk *w, const unsigned char *record, size_t local, size_t size)
{
	if (size > (size_t)w->pages_left * w->usable)
		return SQLITE_CORRUPT;
	unsigned char *page = malloc(w->page_size);
	free(w->payload);
	w->payload = malloc(size + SLACK);
	int r = page != NULL && w->payload != NULL ? SQLITE_OK : SQLITE_NOMEM;
	if (r == SQLITE_OK)
		memcpy(w->payload, record, local);
	uint32_t next = be32(record + local);
	for (size_t done = local; r == SQLITE_OK && done < size;) {
		size_t n = size - done < w->usable - 4 ? size - done : w->usable - 4;
		r = read_page(w, next, page);
		if (r != SQLITE_OK)
			break;
		next = be32(page);
		memcpy(w->payload + done, page + 4, n);
		done += n;
	}
	free(page);
	return r;
}

// Size of the part of a record on its own page: https://www.sqlite.org/fileformat.html section 1.6
static size_t local_size(const struct walk *w, bool is_index, size_t size)
{
	size_t most = is_index ? (w->usable - 12) * 64 / 255 - 23 : w->usable - 35;
	size_t least = (w->usable - 12) * 32 / 255 - 23;
	if (size <= most)
		return size;
	size_t local = least + (size - least) % (w->usable - 4);
	return local <= most ? local : least;
}

// Reads a cell with a record; *ret_end is the position after it.
static int take_cell(struct walk *w, bool is_index, const unsigned char *at, const unsigned char *end,
	const unsigned char **ret_end)
{
	uint64_t size, rowid = 0;
	at = read_varint(at, end, &size);
	if (at != NULL && !is_index)
		at = read_varint(at, end, &rowid);
	if (at == NULL || size > INT32_MAX)
		return SQLITE_CORRUPT;
	size_t local = local_size(w, is_index, size);
	if (local + (local < size ? 4 : 0) > (size_t)(end - at))
		return SQLITE_CORRUPT;
	*ret_end = at + local + (local < size ? 4 : 0);
	if (local == size)
		return hand_over(w, at, local, (int64_t)rowid);
	int r = read_overflow(w, at, local, size);
	return r == SQLITE_OK ? hand_over(w, w->payload, size, (int64_t)rowid) : r;
}

static int walk_page(struct walk *w, uint32_t number, size_t depth);

/* Visits the cells of a page in order, and before each cell its child page. Cells do not overlap: cells that exceed one page in
 * total are not from SQLite. */
static int walk_cells(struct walk *w, const unsigned char *page, size_t depth)
{
	const unsigned char type = page[0], *end = page + w->usable;
	const bool is_leaf = type == TABLE_LEAF || type == INDEX_LEAF,
		   is_index = type == INDEX_LEAF || type == INDEX_INTERIOR;
	const size_t n = be16(page + 3), head = is_leaf ? 8 : 12;
	size_t used = head + 2 * n;
	int r = used <= w->usable ? SQLITE_OK : SQLITE_CORRUPT;
	for (size_t i = 0; r == SQLITE_OK && i < n; i++) {
		const unsigned char *cell = page + be16(page + head + 2 * i), *at = cell + (is_leaf ? 0 : 4),
				    *behind = at;
		if (cell < page + head || at >= end)
			return SQLITE_CORRUPT;
		if (!is_leaf)
			r = walk_page(w, be32(cell), depth + 1);
		if (r == SQLITE_OK && (is_leaf || is_index))
			r = take_cell(w, is_index, at, end, &behind);
		used += (size_t)(behind - cell);
		if (used > w->usable)
			r = r == SQLITE_OK ? SQLITE_CORRUPT : r;
	}
	return r == SQLITE_OK && !is_leaf ? walk_page(w, be32(page + 8), depth + 1) : r;
}

static int walk_page(struct walk *w, uint32_t number, size_t depth)
{
	if (depth >= DEPTH_MAX)
		return SQLITE_CORRUPT;
	if (w->pages[depth] == NULL)
		w->pages[depth] = malloc(w->page_size + SLACK);
	unsigned char *page = w->pages[depth];
	int r = page != NULL ? read_page(w, number, page) : SQLITE_NOMEM;
	if (r != SQLITE_OK)
		return r;
	const bool is_table = page[0] == TABLE_LEAF || page[0] == TABLE_INTERIOR;
	const bool is_index = page[0] == INDEX_LEAF || page[0] == INDEX_INTERIOR;
	return (w->has_rowid ? is_table : is_index) ? walk_cells(w, page, depth) : SQLITE_CORRUPT;
}

/* ---- the table ---- */

static int place_of(const char *const *names, size_t n, const char *name, size_t length)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(names[i], name, length) == 0 && (names[i][length] == '\0' || names[i][length] == ' '))
			return (int)i;
	return -1;
}

static bool choose_columns(struct walk *w, const struct schema_stored *stored, const char *columns)
{
	for (size_t i = 0; i < stored->n; i++)
		w->slots[i] = -1;
	for (const char *at = columns; *at != '\0'; w->n_wanted++) {
		size_t length = strcspn(at, ",");
		int output = place_of(stored->names, stored->n, at, length);
		bool is_one = length == 1 && *at == '1';
		if (w->n_wanted == SCHEMA_STORED_COLUMNS || (output < 0 && !is_one))
			return false;
		w->preset[w->n_wanted] = is_one ? 1 : VALUE_MISSING;
		if (output >= 0)
			w->slots[output] = (int)w->n_wanted;
		if (output >= (int)w->n_columns)
			w->n_columns = (size_t)output + 1;
		at += length + strspn(at + length, ", ");
	}
	return true;
}

// With a log, a newer version of a page may be in the log.
static bool is_without_log(struct walk *w)
{
	unsigned char header[FILE_HEADER];
	if (w->file == NULL || w->file->pMethods == NULL ||
		w->file->pMethods->xRead(w->file, header, sizeof(header), 0) != SQLITE_OK)
		return false;
	w->page_size = be16(header + 16) == 1 ? 65536 : be16(header + 16);
	w->usable = w->page_size - header[20];
	return memcmp(header, "SQLite format 3", 16) == 0 && header[18] == 1 && header[19] == 1 &&
		w->page_size >= PAGE_MIN && w->usable >= PAGE_MIN - 32;
}

static bool open_table(struct walk *w, sqlite3 *db, enum metric_scope scope, const char *columns, uint32_t *ret_root)
{
	struct schema_stored stored;
	sqlite3_stmt *s = NULL;
	bool is_ours = false;
	if (sqlite3_prepare_v2(db, "SELECT rootpage, sql FROM sqlite_schema WHERE type = 'table' AND name = ?1", -1, &s,
		    NULL) == SQLITE_OK) {
		sql_bind_text(s, 1, schema_sample_table(scope));
		is_ours = sqlite3_step(s) == SQLITE_ROW &&
			schema_stored_columns(scope, (const char *)sqlite3_column_text(s, 1), &stored) &&
			choose_columns(w, &stored, columns);
		*ret_root = is_ours ? (uint32_t)sqlite3_column_int64(s, 0) : 0;
	}
	sqlite3_finalize(s);
	return is_ours;
}

int table_pages_read(sqlite3 *db, enum metric_scope scope, const char *columns, table_pages_take *take, void *data)
{
	struct walk w = {.has_rowid = scope == METRIC_RUN, .take = take, .data = data};
	uint32_t root;
	const char *path = sqlite3_db_filename(db, "main");
	if (path == NULL || sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &w.file) != SQLITE_OK ||
		!is_without_log(&w) || !open_table(&w, db, scope, columns, &root))
		return TABLE_PAGES_OTHER;
	w.pages_left = sql_guard_file_bytes(path) / (int64_t)w.page_size + 1;
	int r = walk_page(&w, root, 0);
	for (size_t i = 0; i < DEPTH_MAX; i++)
		free(w.pages[i]);
	free(w.payload);
	return r;
}
