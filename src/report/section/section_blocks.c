/* Code blocks: use per block in a run or over the ranks of a job, and per unit of work. */
#include "report/section/sections.h"

#include "base/util.h"
#include "report/palette.h"
#include "report/phrases.h"
#include "report/picture/picture.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_COLUMNS = 27, PAGE_ROWS_MAX = 2000, UNIT_ROWS_MAX = 500 }; // row limits for manual scrolling

static const struct block_finding *block_of(const struct object_at *row)
{
	return row->data;
}

static const struct job_block *job_block_of(const struct object_at *row)
{
	return &document_of(row)->job->blocks[row->index];
}

// UINT32_MAX: the row of time outside blocks.
static uint32_t index_of(const struct object_at *row)
{
	const struct findings *f = findings_of(row);
	return row->index < f->n_blocks && block_of(row) == &f->blocks[row->index] ? (uint32_t)row->index : UINT32_MAX;
}

static void name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct block_finding *block = block_of(row);
	uint32_t index = index_of(row);
	if (!is_page || index == UINT32_MAX) {
		buf_str(out, block->name);
		return;
	}
	buf_printf(out, "<span class=\"swatch c-%s\"></span>",
		palette[colour_of_block(document_of(row)->charts, index)].css);
	part_name(out, block->name);
	if (is_of_job(row) && job_block_of(row)->waits)
		buf_str(out, " <span class=\"tag tag-waits\">waits</span>");
}

static void attributes(struct buf *out, const struct object_at *row)
{
	buf_printf(out, " data-block=\"%zu\"", row->index);
}

/* ---- values shown only in tables ---- */

static double known(const struct object_at *at, double value)
{
	return block_of(at)->calls != 0 ? value : (double)NAN; // a block that was never called has no known values
}

static double energy_j(const struct object_at *at)
{
	return known(at, block_of(at)->total_j);
}

static double own_j(const struct object_at *at)
{
	return known(at, block_of(at)->self_j);
}

static double per_call_j(const struct object_at *at)
{
	int64_t calls = block_of(at)->calls;
	return known(at, calls > 0 ? block_of(at)->total_j / (double)calls : (double)NAN);
}

static double power_w(const struct object_at *at)
{
	const struct block_finding *block = block_of(at);
	return known(at, block->active_s > 0 ? block->total_j / block->active_s : (double)NAN);
}

static double share_percent(const struct object_at *at)
{
	double all_j = findings_of(at)->ledger.target_j;
	return known(at, all_j > 0 ? block_of(at)->total_j / all_j * 100 : (double)NAN);
}

static double cpu_s(const struct object_at *at)
{
	return known(at, block_of(at)->cpu_s);
}

// Set only if some ranks have not called the block.
static double absent_ranks(const struct object_at *at)
{
	const struct job_findings *job = document_of(at)->job;
	for (size_t i = 0; job != NULL && i < job->n_blocks; i++)
		if (job->blocks[i].time_s.count < job->duration_s.count)
			return (double)job_block_of(at)->time_s.count;
	return (double)NAN;
}

static const struct block_unit *first_unit(const struct block_finding *block)
{
	for (size_t i = 0; i < block->n_units; i++)
		if (!isnan(block->units[i].j_per_unit))
			return &block->units[i];
	return NULL;
}

static void one_of(struct buf *out, const char *unit, bool is_page)
{
	struct buf one;
	buf_init(&one, 1 << 12);
	buf_add(&one, unit, phrase_one_of(unit));
	if (is_page)
		part_name(out, one.data);
	else if (one.failed == 0)
		text_fit_middle(out, one.data, NAME_COLUMNS);
	buf_finish(&one);
}

static double unit_j(const struct object_at *at)
{
	const struct block_unit *unit = first_unit(block_of(at));
	return unit != NULL ? unit->j_per_unit : (double)NAN;
}

static void first_unit_j(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct block_unit *unit = first_unit(block_of(row));
	if (unit == NULL)
		return;
	part_energy(out, unit->j_per_unit, unit->error_j_per_unit);
	buf_str(out, " <span class=\"faint per\">per ");
	one_of(out, unit->name, is_page);
	buf_str(out, "</span>");
}

static const struct field more_fields[] = {
	FIELD_NUMBER("energy_j", energy_j, "J", "energy while it ran", .title = "energy"),
	FIELD_NUMBER("own_j", own_j, "J", "energy while it was the innermost block", .title = "own"),
	FIELD_NUMBER("per_call_j", per_call_j, "J", "energy per call", .title = "per call"),
	FIELD_NUMBER("power_w", power_w, "W", "power while it ran", .title = "power"),
	FIELD_NUMBER("share_percent", share_percent, "%", "share of the program's energy", .title = "share"),
	FIELD_NUMBER("known_cpu_s", cpu_s, "s", "CPU time of the program while it ran", .title = "CPU"),
	FIELD_NUMBER("unit_j", unit_j, "J", "energy per first unit of work", .title = "J per unit"),
	FIELD_NUMBER("in_ranks", absent_ranks, NULL, "ranks that called it", .title = "in ranks"),
};
static const struct object_type more = OBJECT_TYPE("block_more", "Row of the block table.", more_fields);

/* ---- tables; a terminal has separate tables for time and energy ---- */

static void strip(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_block *block = job_block_of(row);
	const struct spread *s = &block->time_s;
	part_strip(out, block->rank_time_s, document_of(row)->job->n_ranks, s);
}

static void most_of_all(struct buf *out, const struct object_at *row, bool is_page)
{
	part_most_of_all(out, document_of(row)->job, &job_block_of(row)->time_s);
}

#define NAME                                                                                                           \
	{                                                                                                              \
		NULL, "", COLUMN_NAME, .write = name, .width = NAME_COLUMNS, .is_middle = true                        \
	}
static const struct column time_columns[] = {
	NAME,
	{"num_calls"},
	{"compute_time.total", "time"},
	{"compute_time.mean", "per call"},
	{"p95_s"},
	{"self_time_s"},
	{"known_cpu_s"},
};
static const struct grid time_grid = GRID("times", time_columns, .more = &more);

#define DERIVED .of = "energy_j", .error = "energy.error_j"
static const struct column energy_columns[] = {
	NAME,
	{"energy_j", .error = "energy.error_j", .error_title = "error"},
	{"own_j", .error = "energy.self_error_j"},
	{"per_call_j", DERIVED},
	{"power_w", DERIVED},
	{"share_percent", DERIVED},
};
// Time and energy in one table, where there is little room.
static const struct column brief_columns[] = {
	NAME, {"num_calls"}, {"compute_time.total", "time"}, {"compute_time.mean", "per call"},
	{"energy_j", .error = "energy.error_j", .error_title = "error"}, {"share_percent", DERIVED},
};
static const struct grid brief_grid = GRID("brief", brief_columns, .more = &more);
static const struct grid energy_grid = GRID("energies", energy_columns, .more = &more);

static const struct column job_columns[] = {
	NAME,
	{"num_calls"},
	{"rank_time_s.mean", "per rank"},
	{"rank_time_s.max"},
	{"rank_time_s.max_rank", .print = human_whole},
	{"rank_time_s.imbalance_percent"},
	{"energy_j", .error = "energy.error_j", .error_title = "error"},
};
static const struct grid job_grid = GRID("job-blocks", job_columns, .more = &more);

// The most important columns are first, so that small screens show them without scrolling.
static const struct column page_columns[] = {
	{NULL, "block", COLUMN_NAME, .write = name},
	{"energy_j", .error = "energy.error_j", .is_optional = true, .is_sorted = true},
	{"share_percent", DERIVED, .has_bar = true, .is_optional = true},
	{"own_j", "own energy", .only = OF_RUN, .error = "energy.self_error_j", .is_optional = true},
	{"per_call_j", "J per call", .only = OF_RUN, DERIVED, .is_optional = true},
	{"power_w", .only = OF_RUN, DERIVED, .is_optional = true},
	{"unit_j", .only = OF_RUN, .write = first_unit_j, .is_optional = true},
	{"num_calls"},
	{"compute_time.total", "time", .only = OF_RUN, .is_sorted = true},
	{"compute_time.mean", "per call"},
	{"p95_s", .is_optional = true},
	{"self_time_s", .only = OF_RUN},
	{"known_cpu_s", .only = OF_RUN, .is_optional = true},
	{"in_ranks", .only = OF_JOB, .is_optional = true},
	{"rank_time_s.min", .only = OF_JOB},
	{"rank_time_s.mean", .only = OF_JOB},
	{"rank_time_s.max", .only = OF_JOB},
	{"rank_time_s.imbalance_percent", .only = OF_JOB},
	{NULL, "rank of max", COLUMN_TEXT, OF_JOB, .write = most_of_all},
	{NULL, "by rank, from 0", COLUMN_TEXT, OF_JOB, .write = strip},
};
static const struct grid page_grid = GRID("blocks-table", page_columns, .more = &more, .attributes = attributes);

/* ---- per unit of work ---- */

static void unit_block(struct buf *out, const struct object_at *row, bool is_page)
{
	if (is_page)
		part_name(out, block_of(row->outer)->name);
	else
		buf_str(out, block_of(row->outer)->name);
}

static void work(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct block_unit *unit = row->data;
	human_exact(out, unit->sum, 1e4);
	buf_char(out, ' ');
	if (is_page)
		part_name(out, unit->name);
	else
		text_fit_middle(out, unit->name, NAME_COLUMNS / 2);
}

static void per_one(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out, "per ");
	one_of(out, ((const struct block_unit *)row->data)->name, is_page);
}

static const struct column unit_columns[] = {
	{NULL, "", COLUMN_NAME, .write = unit_block, .width = NAME_COLUMNS, .is_middle = true},
	{"sum", "work", .write = work},
	{"j_per_unit", "energy", .error = "error_j_per_unit", .error_title = "error"},
	{NULL, "", COLUMN_TEXT, .write = per_one},
};
static const struct grid unit_grid = GRID("units-table", unit_columns);

static size_t known_units(const struct block_finding *block)
{
	size_t n = 0;
	for (size_t i = 0; i < block->n_units; i++)
		n += !isnan(block->units[i].j_per_unit);
	return n;
}

// For blocks with several units on a page, where the block table has the first unit of each block.
static void units(const struct part *part, const struct rows *blocks)
{
	size_t n = 0, most = 0;
	for (size_t i = 0; i < blocks->shown; i++) {
		size_t one = known_units(block_of(&blocks->at[i]));
		n += one;
		most = one > most ? one : most;
	}
	struct rows rows = {.at = arena_alloc(part->document->arena, n + 1, sizeof(*rows.at))};
	if (most < (is_page(part) ? 2 : 1) || rows.at == NULL)
		return;
	for (size_t i = 0; i < blocks->shown; i++) {
		struct rows one;
		if (rows_of(&blocks->at[i], "units", part->document->arena, &one) < 0)
			part->out->failed = -ENOMEM;
		for (size_t k = 0; k < one.n; k++)
			if (!isnan(((const struct block_unit *)one.at[k].data)->j_per_unit))
				rows.at[rows.n++] = one.at[k];
	}
	if (is_page(part))
		buf_str(part->out, "<h3 id=\"units\">Energy per unit of work</h3>\n");
	else
		section_begin(part, "units", title_of_section(SECTION_UNITS));
	part_grid(part, &unit_grid, &rows, (struct limits){SIZE_MAX, UNIT_ROWS_MAX, PRINT_UNITS});
}

/* ---- notes ---- */

// Reports calls whose end was not recorded.
static void endings(const struct part *part)
{
	long long cut = 0, unwound = 0;
	for (size_t i = 0; i < part->f->n_blocks; i++) {
		cut += part->f->blocks[i].cut;
		unwound += part->f->blocks[i].unwound;
	}
	if (cut > 0)
		html_section_notef(part, "%lld call%s ended with %s thread, program or process.", cut,
			cut == 1 ? "" : "s", cut == 1 ? "its" : "their");
	if (unwound > 0)
		html_section_notef(part,
			"%lld call%s no end event (longjmp, or missing end) and ended with the enclosing call.",
			unwound, unwound == 1 ? " had" : "s had");
}

static void early_remark(const struct part *part)
{
	for (size_t i = 0; part->job != NULL && i < part->job->n_ranks; i++)
		if (part->job->ranks[i].ended_early) {
			html_section_note(part,
				"Rank times and imbalance exclude ranks that ended early.");
			return;
		}
}

static void page_remarks(const struct part *part, bool has_energy)
{
	if (part->job != NULL)
		html_section_note(part,
			"Min, mean and max refer to a rank's total time in a block. A block's energy is the energy of its ranks "
			"while it ran, including nested blocks.");
	else if (has_energy)
		html_section_note(part,
			"A block's energy is the energy of this program while it ran, including nested blocks; its own energy "
			"excludes them. Blocks that are nested, or run at the same time in several threads, each include the shared "
			"energy: shares can add up to more than 100 %, own energy cannot.");
	if (part->job != NULL && part->job->block_energy_left_out)
		html_section_note(part,
			"Too many spans to read all: blocks of ranks that did not read the sensors have no energy. "
			"Use `--all-samples` to read all spans.");
}

/* ---- section ---- */

// Use while no block was open. The number of calls is unknown, not zero.
static struct block_finding outside_of(const struct findings *f)
{
	struct block_finding outside = {
#define BLOCK_COUNT(member, ...) .member = VALUE_MISSING,
#define BLOCK_FIGURE(member, ...) .member = (double)NAN,
#include "metric/blocks.def"
		.name = "outside blocks", .resolved = is_resolved(f->outside_j, f->outside_error_j)};
	outside.total_j = f->outside_j;
	outside.error_j = f->outside_error_j;
	return outside;
}

static void text_tables(const struct part *part, struct rows *rows, size_t rows_max, bool has_energy)
{
	const struct limits limits = {rows_max, 0, PRINT_NONE};
	const struct object_at *foot = rows->foot;
	const bool is_short = part->is_brief && has_energy;
	if (part->job != NULL || is_short) {
		section_begin(part, "blocks",
			part->job != NULL ? "Code blocks over all ranks" : title_of_section(SECTION_BLOCKS));
		part_grid(part, part->job != NULL ? &job_grid : &brief_grid, rows, limits);
		(part->job != NULL ? early_remark : endings)(part);
		return;
	}
	section_begin(part, "blocks", "Code blocks: time");
	rows->foot = NULL;
	part_grid(part, &time_grid, rows, limits);
	endings(part);
	if (has_energy) {
		section_begin(part, "blocks", "Code blocks: energy");
		rows->foot = foot;
		grid_text(&energy_grid, rows, part->out, part->style);
		part_mark_note(part, &energy_grid, rows);
	}
}

static struct rows sorted_blocks(const struct part *part)
{
	struct rows rows = part_rows(part, "blocks");
	rows_sort(&rows, "energy.total_j", "compute_time.total");
	return rows;
}

void section_units(const struct part *part)
{
	struct rows rows = sorted_blocks(part);
	rows.shown = rows.n < TEXT_ROWS_MAX || part->is_whole ? rows.n : TEXT_ROWS_MAX;
	units(part, &rows);
}

bool section_largest_blocks(const struct part *part, size_t rows_max)
{
	const bool has_energy = !isnan(part->f->outside_j);
	struct rows rows = sorted_blocks(part);
	struct column columns[ARRAY_SIZE(brief_columns)];
	char title[64] = "code blocks";
	rows.shown = rows.n < rows_max ? rows.n : rows_max;
	if (rows.shown == 0)
		return false;
	if (rows.n > rows.shown)
		snprintf(title, sizeof(title), "%zu of %zu blocks", rows.shown, rows.n);
	memcpy(columns, brief_columns, sizeof(columns));
	columns[0].title = title;
	const struct grid grid = GRID("largest", columns, .more = &more);
	buf_char(part->out, '\n');
	grid_text(has_energy ? &grid : &time_grid, &rows, part->out, part->style);
	return has_energy && grid_is_marked(&grid, &rows, ON_TEXT);
}

static void write_blocks(const struct part *part, size_t rows_max)
{
	const struct findings *f = part->f;
	struct block_finding outside = outside_of(f);
	struct rows rows = sorted_blocks(part);
	bool has_energy = !isnan(f->outside_j);
	if (rows.n == 0)
		return;
	struct object_at foot = {rows.at[0].type, &outside, rows.at[0].outer, SIZE_MAX, NULL};
	rows.foot = has_energy && part->job == NULL ? &foot : NULL;
	if (!is_page(part)) {
		text_tables(part, &rows, rows_max, has_energy);
		return;
	}
	section_begin(part, "blocks", part->job != NULL ? "Code blocks over the ranks" : "Code blocks");
	part_grid(part, &page_grid, &rows, (struct limits){0, rows_max, PRINT_BLOCKS});
	page_remarks(part, has_energy);
	early_remark(part);
	if (part->job == NULL) {
		endings(part);
		units(part, &rows);
	}
	section_end(part);
}

void section_blocks(const struct part *part)
{
	write_blocks(part, is_page(part) ? PAGE_ROWS_MAX : TEXT_ROWS_MAX);
}

void section_all_blocks(const struct part *part)
{
	write_blocks(part, SIZE_MAX);
	struct rows rows = sorted_blocks(part);
	units(part, &rows);
}
