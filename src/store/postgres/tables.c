#include "store/postgres/tables.h"

#include "store/schema.h"

static void add_literal(struct buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			buf_char(out, '\'');
		buf_char(out, *text);
	}
	buf_char(out, '\'');
}

static void add_column(struct buf *out, const struct pg_column *column)
{
	buf_printf(out, "\"%s\" %s%s", column->name, column->type, column->not_null ? " NOT NULL" : "");
}

static void create_table(struct buf *out, const struct pg_table *table)
{
	struct pg_column columns[PG_COLUMNS_MAX];
	size_t n = pg_columns(table->name, columns);
	buf_printf(out, "CREATE TABLE IF NOT EXISTS %s (", table->name);
	for (size_t i = 0; i < n; i++) {
		buf_str(out, i > 0 ? ", " : "");
		add_column(out, &columns[i]);
	}
	if (table->key != NULL)
		buf_printf(out, ", PRIMARY KEY (run_id%s)", table->key);
	const struct pg_big_table *big = pg_big_table(table->name);
	buf_printf(out, ")%s%s;\n", big != NULL ? " PARTITION BY RANGE (\"time\")" : "", table->options);
}

// (table, column, type) … of all columns missing on the server, as the FROM and WHERE of a query.
static void from_missing_columns(struct buf *out)
{
	const char *comma = " FROM (VALUES ";
	for (size_t i = 0; pg_table(i) != NULL; i++) {
		struct pg_column columns[PG_COLUMNS_MAX];
		size_t n = pg_columns(pg_table(i)->name, columns);
		for (size_t at = 0; at < n; at++, comma = ", ")
			buf_printf(out, "%s('%s', '%s', '%s')", comma, pg_table(i)->name, columns[at].name,
				columns[at].type);
	}
	buf_str(out,
		") AS v (owner, name, type) WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = "
		"to_regclass(v.owner) AND a.attname = v.name AND NOT a.attisdropped)");
}

void pg_missing_columns_sql(struct buf *out)
{
	buf_str(out, "SELECT count(*)");
	from_missing_columns(out);
}

/* Adds the columns that a store of an older wattle lacks. Existing columns are not changed: that would lock all partitions of
 * the table. */
static void add_missing_columns(struct buf *out)
{
	buf_str(out, "DO $$ DECLARE c record; BEGIN FOR c IN SELECT v.*");
	from_missing_columns(out);
	buf_str(out,
		" LOOP\nEXECUTE format('ALTER TABLE %I ADD COLUMN %I %s', c.owner, c.name, c.type); END LOOP; END $$;\n");
}

static void explain_column(struct buf *out, const char *table, const struct pg_column *column)
{
	buf_printf(out, "COMMENT ON COLUMN %s.\"%s\" IS ", table, column->name);
	add_literal(out, column->meaning);
	buf_str(out, ";\nINSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, ");
	add_literal(out, table);
	buf_str(out, ", ");
	add_literal(out, column->name);
	buf_str(out, ", nullif(");
	add_literal(out, column->unit);
	buf_str(out, ", ''), ");
	add_literal(out, column->meaning);
	buf_str(out, ");\n");
}

static void explain(struct buf *out)
{
	buf_str(out, "DELETE FROM metric WHERE run_id IS NULL;\n");
	for (size_t i = 0; pg_table(i) != NULL; i++) {
		struct pg_column columns[PG_COLUMNS_MAX];
		size_t n = pg_columns(pg_table(i)->name, columns);
		for (size_t c = 0; c < n; c++)
			explain_column(out, pg_table(i)->name, &columns[c]);
	}
	for (int scope = 0; scope < METRIC_SCOPES; scope++) {
		size_t n;
		const struct metric *metrics = metric_table((enum metric_scope)scope, &n);
		for (size_t i = 0; i < n; i++) {
			buf_printf(out, "UPDATE metric SET kind = '%s', source = ", metric_kind_name(metrics[i].kind));
			add_literal(out, metrics[i].source);
			buf_printf(out, " WHERE run_id IS NULL AND table_name = '%s' AND name = '%s';\n",
				schema_sample_table((enum metric_scope)scope), metrics[i].name);
		}
	}
}

// Indexes for job reports and lists.
static const char lookups_sql[] =
	"CREATE INDEX IF NOT EXISTS recording_job ON recording (job_id);\n"
	"CREATE INDEX IF NOT EXISTS recording_started ON recording (started);\n"
	"CREATE UNIQUE INDEX IF NOT EXISTS metric_of_run ON metric (run_id, table_name, name);\n";

static void list_big(struct buf *out)
{
	size_t n;
	const struct pg_big_table *big = pg_big_tables(&n);
	for (; n > 0; n--, big++)
		buf_printf(out,
			"INSERT INTO wattle_big (name, has_level, indexes) VALUES ('%s', %s, '%s') ON CONFLICT (name) "
			"DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;\n",
			big->name, big->has_level ? "true" : "false", big->indexes);
}

void pg_tables_sql(struct buf *out)
{
	for (size_t i = 0; pg_table(i) != NULL; i++)
		create_table(out, pg_table(i));
	add_missing_columns(out);
	buf_str(out, lookups_sql);
	list_big(out);
	explain(out);
	buf_str(out, pg_functions_sql);
	buf_printf(out,
		"DELETE FROM wattle_schema;\nINSERT INTO wattle_schema (version, compatible) VALUES (%d, %d);\n",
		PG_SCHEMA_VERSION, PG_SCHEMA_COMPATIBLE);
}
