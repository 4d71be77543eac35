#include "report/compare_report.h"

#include "base/jsonw.h"

static void values(struct jsonw *j, const char *key, const struct compare_row *row, size_t n)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = 0; i < n; i++)
		jsonw_key_double(j, row->values[i].session, row->values[i].value);
	jsonw_end_object(j);
}

static void errors(struct jsonw *j, const char *key, const struct compare_row *row, size_t n)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = 0; i < n; i++)
		jsonw_key_double(j, row->values[i].session, row->values[i].error);
	jsonw_end_object(j);
}

typedef void (*print_row)(struct jsonw *j, const char *key, const struct compare_row *row, size_t n);

static void rows(struct jsonw *j, const char *key, const struct compare_row *row, size_t n_rows, size_t n,
	print_row print)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = 0; i < n_rows; i++)
		print(j, row[i].name, &row[i], n);
	jsonw_end_object(j);
}

static void usage(struct jsonw *j, const struct comparison *c)
{
	jsonw_key(j, "code_block_resource_usage");
	jsonw_begin_object(j);
	for (size_t m = 0; c->n_blocks > 0 && m < c->n_metrics; m++)
		rows(j, c->overall[m].name, &c->usage[m * c->n_blocks], c->n_blocks, c->n_sessions, values);
	jsonw_end_object(j);
}

static void energy(struct jsonw *j, const struct comparison *c)
{
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	values(j, "total_j", &c->energy, c->n_sessions);
	errors(j, "error_j", &c->energy, c->n_sessions);
	rows(j, "blocks", c->block_energy, c->n_blocks, c->n_sessions, values);
	rows(j, "block_errors", c->block_energy, c->n_blocks, c->n_sessions, errors);
	jsonw_end_object(j);
}

void compare_json(const struct comparison *comparison, struct buf *out)
{
	const struct comparison *c = comparison;
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	rows(&j, "overall_resource_usage", c->overall, c->n_metrics, c->n_sessions, values);
	usage(&j, c);
	rows(&j, "code_block_compute_time", c->compute_time, c->n_blocks, c->n_sessions, values);
	if (c->has_energy)
		energy(&j, c);
	jsonw_end_object(&j);
}
