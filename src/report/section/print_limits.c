/* Selects the rows of long tables that are printed. A run gets two pages of paper: each table has a minimum number of
 * rows, and unused space goes to the tables in the order below. The screen shows all rows, and the print states how many
 * are omitted. */
#include "report/section/html_section.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/phrases.h"
#include "report/picture/picture.h"

// Space in table rows: total, and use by other elements. With more than NOTES_FEW notes, the spans move to the second page.
enum { ROOM = 60, HEADING = 3, FLAME = 6, TUNE = 16, SPANS = 20, NOTES_FEW = 2 };

static const size_t least[PRINT_TABLES] = {[PRINT_BLOCKS] = 10,
	[PRINT_DOMAINS] = 8,
	[PRINT_GPUS] = 8,
	[PRINT_LAYERS] = 6,
	[PRINT_UNITS] = 4,
	[PRINT_HALF] = 4};
// Limits for the longer pages of jobs.
static const size_t of_job[PRINT_TABLES] =
	{[PRINT_BLOCKS] = 14, [PRINT_DOMAINS] = 14, [PRINT_GPUS] = 10, [PRINT_NODES] = 17, [PRINT_RANKS] = 20};

// report.css has one rule for each value.
static const size_t steps[] = {4, 6, 8, 10, 12, 14, 17, 20, 25, 30};

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t units_known(const struct findings *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n_blocks; i++)
		n += f->blocks[i].n_units;
	return n;
}

static void count_note(void *data, const char *text)
{
	size_t *n = data;
	(*n)++;
}

static size_t taken_by_others(const struct part *part)
{
	size_t n_notes = 0;
	report_warnings(part->f, count_note, &n_notes);
	return part->run->n_devices / 2 + (picture_has(part->charts, PICTURE_FLAME) ? FLAME : 0) +
		(run_metadata(part->run, "cap_tune") != NULL ? TUNE : 0) +
		(n_notes > NOTES_FEW && picture_has(part->charts, PICTURE_SPANS) ? SPANS : 0);
}

// Number of rows of `table` to print, out of `n`.
static size_t rows_printed(const struct part *part, enum print_table table, size_t n)
{
	const struct findings *f = part->f;
	if (part->job != NULL)
		return of_job[table];
	size_t wanted[PRINT_TABLES] = {[PRINT_BLOCKS] = f->n_blocks,
		[PRINT_DOMAINS] = f->n_domains,
		[PRINT_GPUS] = f->n_gpus,
		[PRINT_UNITS] = units_known(f),
		[PRINT_HALF] = larger(f->n_user_metrics, part->run->n_processes)};
	wanted[table] = n;
	size_t taken = taken_by_others(part);
	for (size_t i = 0; i < PRINT_TABLES; i++)
		taken += wanted[i] == 0 ? 0 : HEADING + (wanted[i] < least[i] ? wanted[i] : least[i]);
	size_t left = taken < ROOM ? ROOM - taken : 0;
	for (size_t i = 0; i < PRINT_TABLES; i++) {
		size_t more = wanted[i] > least[i] ? wanted[i] - least[i] : 0;
		size_t granted = more < left ? more : left;
		if (i == (size_t)table)
			return n < least[i] ? n : least[i] + granted;
		left -= granted;
	}
	return n;
}

void print_limit_mark(const struct part *part, enum print_table table, size_t n)
{
	size_t capacity = table != PRINT_NONE ? rows_printed(part, table, n) : n, printed = 0;
	if (capacity >= n)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && steps[i] <= capacity; i++)
		printed = steps[i];
	buf_printf(part->out,
		"<p class=\"faint small on-paper paper-%zu\">… and %zu more; the page lists them.</p>\n", printed,
		n - printed);
}
