#include "store/postgres/pq_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- COPY ---- */

static int begin_copy(struct pg *pg, const char *sql, ExecStatusType wanted, struct wattle_error *reterr)
{
	PGresult *result = pg->pq.send(pg->connection, sql) == 1 ? pg__last_result(pg) : NULL;
	int r = result != NULL && pg->pq.result_status(result) == wanted ? 0 : pg__fail(pg, result, reterr);
	pg->pq.clear(result);
	return r;
}

/* Reads the server's result at the end of a COPY; all results must be fetched before the next statement. If libpq could not end
 * a COPY (out of memory), it would return that COPY as the next result forever. */
static int end_copy(struct pg *pg, struct wattle_error *reterr)
{
	int r = 0;
	PGresult *result;
	for (bool is_over = false; !is_over && (result = pg__next_result(pg)) != NULL; pg->pq.clear(result)) {
		ExecStatusType status = pg->pq.result_status(result);
		is_over = status == PGRES_COPY_IN || status == PGRES_COPY_OUT;
		if (status != PGRES_COMMAND_OK && r == 0)
			r = pg__fail(pg, result, reterr);
	}
	return r == 0 && pg->has_timed_out ? pg__lost(pg, reterr) : r;
}

int pg_copy_begin(struct pg *pg, const char *sql, struct wattle_error *reterr)
{
	return begin_copy(pg, sql, PGRES_COPY_IN, reterr);
}

int pg_copy_data(struct pg *pg, const void *bytes, size_t size, struct wattle_error *reterr)
{
	// Only a lost connection refuses data; the results, if any still arrive, give the reason.
	if (pg->pq.put(pg->connection, bytes, (int)size) == 1 && pg__drain(pg))
		return 0;
	int r = end_copy(pg, reterr);
	return r < 0 ? r : pg__lost(pg, reterr);
}

int pg_copy_end(struct pg *pg, struct wattle_error *reterr)
{
	if (pg->pq.put_end(pg->connection, NULL) == 1)
		return end_copy(pg, reterr);
	int r = end_copy(pg, reterr);
	return r < 0 ? r : pg__lost(pg, reterr);
}

/* ---- COPY OUT ---- */

enum { FIELDS_MAX = 1600 }; // column limit of PostgreSQL

struct copy_out {
	pg_row *row;
	void *data;
	bool has_header, is_over;
	struct pg_field *fields; // owned, FIELDS_MAX
};

// Reads one tuple: the number of fields, then each field after its size. -EINVAL: malformed.
static int take_tuple(struct copy_out *out, const unsigned char *bytes, size_t size)
{
	if (size < 2)
		return -EINVAL;
	int16_t n = (int16_t)pg__big_endian(bytes, 2);
	size_t at = 2;
	out->is_over = n < 0; // the trailer
	if (n < 0 || n > FIELDS_MAX)
		return n < 0 ? 0 : -EINVAL;
	for (int16_t i = 0; i < n; i++) {
		if (size - at < 4)
			return -EINVAL;
		int32_t length = (int32_t)pg__big_endian(bytes + at, 4);
		at += 4;
		if (length > 0 && (size_t)length > size - at)
			return -EINVAL;
		out->fields[i] = (struct pg_field){length >= 0 ? bytes + at : NULL, length >= 0 ? length : -1};
		at += length > 0 ? (size_t)length : 0;
	}
	return out->row(out->data, out->fields, (size_t)n);
}

// libpq returns one tuple at a time, the first one with the header.
static int take_copy_data(struct copy_out *out, const unsigned char *bytes, size_t size)
{
	enum { HEADER = 19 }; // signature, flags, length of the header extension
	size_t skip = 0;
	if (!out->has_header) {
		if (size < HEADER || memcmp(bytes, "PGCOPY\n\377\r\n", 11) != 0)
			return -EINVAL;
		skip = HEADER + (size_t)pg__big_endian(bytes + 15, 4);
		out->has_header = true;
		if (skip >= size)
			return skip > size ? -EINVAL : 0;
	}
	return out->is_over ? 0 : take_tuple(out, bytes + skip, size - skip);
}

// Returns 1 at the end, whether success or failure.
static int next_copy_data(struct pg *pg, struct copy_out *out)
{
	char *bytes = NULL;
	int size;
	while ((size = pg->pq.get(pg->connection, &bytes, 1)) == 0)
		if (!pg__take(pg, POLLIN))
			return 1;
	if (size < 0)
		return 1;
	int r = take_copy_data(out, (const unsigned char *)bytes, (size_t)size);
	pg->pq.free(bytes);
	return r;
}

int pg_copy_out(struct pg *pg, const char *sql, pg_row *row, void *data, struct wattle_error *reterr)
{
	struct copy_out out = {.row = row, .data = data, .fields = calloc(FIELDS_MAX, sizeof(*out.fields))};
	if (out.fields == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	int r = begin_copy(pg, sql, PGRES_COPY_OUT, reterr);
	int taken = 0, ended = 0;
	if (r == 0) {
		// Reads to the end even after the caller has stopped, so that the connection can be reused.
		while (ended == 0) {
			int next = next_copy_data(pg, &out);
			ended = next == 1;
			if (next < 0 && taken == 0) {
				taken = next;
				out.is_over = true;
			}
		}
		r = end_copy(pg, reterr);
	}
	free(out.fields);
	if (r == 0 && taken == -EINVAL)
		error_set(reterr, taken, "PostgreSQL at %s: received damaged rows", pg->where);
	return r < 0 ? r : taken;
}
