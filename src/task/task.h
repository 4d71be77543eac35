/* Operations on files and stores that the program and the Python package share. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/tracking_blocks.h"
#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "base/error.h"
#include "store/job_runs.h"
#include "store/postgres/send.h"
#include "store/run.h"
#include "store/saved_blocks.h"

#include <stdbool.h>
#include <stdint.h>

/* Comparison of results from files. */

struct named_file {
	const char *name, *file; // names must differ
	const char *store;       // URL: `file` is the id of a job in that store; NULL: `file` is a file or the folder of a job
};

/* Loads each file as load_blocks does; statistic: min, max, mean or std. The arena owns the result. Errors of load_blocks and
 * compare_make. */
int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr);

struct compared_run { // additional data of a compared run for the page
	struct run run;
	struct findings findings;
	struct charts charts;
	bool is_run; // false: saved results without a run
};
// As compare_files, and loads the runs themselves: n of them, zeroed by the caller, who must finish them whatever is returned.
int compare_runs(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct compared_run *ret_runs, struct comparison *ret_comparison, struct wattle_error *reterr);
void compare_runs_finish(struct compared_run *runs, size_t n);

/* Export of a run file to another format. */

struct export_choice {
	const char *format; // csv, jsonl, gpu_tracker … (export_formats), folded, or aipowermeter
	const char *weight; // for folded: energy or time; NULL: energy
	const char *path;   // output file, or folder for aipowermeter; - is standard output
	bool overwrite;
	int64_t every_ns; // for openmetrics: at most one sample of a series per interval; 0: all
};

// -EINVAL: unknown format or weight; -EEXIST; -ENODATA: the run has no data for the format; errors of run_load.
int export_file(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr);

/* Export of a run to a folder of AIPowerMeter. */

// -EEXIST: the folder exists, is not empty, and overwrite is false; -ENODATA: the run has no samples.
int export_aipowermeter(const struct run *run, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr);

/* Loading code blocks from any kind of file. */

// Loads a run file, or a span file as a run with spans only. As run_load.
int load_run(const char *path, struct run *ret_run, struct wattle_error *reterr);
// The caller finishes both, the findings first.
int load_findings(const char *path, struct run *ret_run, struct findings *ret_findings, struct wattle_error *reterr);
// One statistic of a loaded run; `path` is for messages.
int load_blocks_of(const struct findings *findings, const char *path, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr);
// One statistic of a run file, a span file, the JSON of wattle blocks, or a folder of a job's run files. As saved_blocks_load.
int load_blocks(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr);
// One statistic of a job in a store, by its id. As load_job.
int load_blocks_stored(const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr);

/* All runs of a job and their findings, from a folder of run files or from a store. */

struct loaded_job { // must not be moved: the findings point to the runs
	struct job_runs runs;
	struct job_findings job;
};

bool load_is_folder(const char *path);
/* Either `folder` or `url` is given. Errors as job_runs_from_folder and pg_open; options may be NULL. After a return of 0 the
 * caller finishes *ret_job, and options must outlive it. */
int load_job(const char *folder, const char *url, const struct job_choice *choice, const struct job_options *options,
	struct loaded_job *ret_job, struct wattle_error *reterr);
void load_job_finish(struct loaded_job *job);

/* Sending a run file to a PostgreSQL store, for `wattle push` and the uploader of `run --store`. */

/* Sends the end of a run whose recorder has exited, after send_batch returned 0: values that need the complete run (processes,
 * the check that all rows arrived, energy and code blocks as the report computes them). Returns as send_batch. */
int push_end(struct send *send, const char *path, struct wattle_error *reterr);

struct push_result {
	struct send_count sent;
	char run_id[40];
	bool is_live; // the recorder is running: the final rows so far have been sent
};

/* Sends the whole file. If the server becomes unavailable, retries for up to wait_ns without a successful batch. The message of
 * a failure names what was not sent. */
int push_file(const char *path, const char *url, int64_t wait_ns, struct push_result *ret_result,
	struct wattle_error *reterr);

// Pause before the n-th attempt in a row, n from 1: 0.2 s, doubled up to 20 s, times a random factor of 0.5 to 1.5, because
// many clients may wait for one server.
int64_t push_backoff_ns(int n);

/* Code blocks of gpu_tracker's files. */

/* tracking_file NULL: only compute times are known. The arena owns the result. Errors of tracking_table_read and
 * sub_tracking_read. */
int tracking_files_blocks(const char *tracking_file, const char *sub_tracking_file, struct arena *arena,
	struct tracking_findings *ret_findings, struct wattle_error *reterr);

/* Functions of a profiled run. */

struct elf_symbol {
	uint64_t begin, size; // virtual address; size 0: up to the next symbol
	const char *name;     // as in the file, mangled
};
struct elf_segment {
	uint64_t offset, size, address; // in the file, and where it is loaded
};
struct elf_symbols {
	struct elf_symbol *at; // owned; ascending by begin
	size_t n;
	struct elf_segment *segments; // owned
	size_t n_segments;
	char *names; // owned
};
/* Symbols of the file itself, of its separate debug file (by build ID or .gnu_debuglink), or at least its dynamic ones. -ESTALE:
 * the file is not the one that was mapped; -EINVAL: not an ELF file, or damaged; -ENODATA: no symbols; errors of open. */
int elf_symbols_read(const struct run_profile_module *module, struct elf_symbols *ret_symbols);
void elf_symbols_finish(struct elf_symbols *symbols);
// Name of the function at an offset in the file; NULL: unknown.
const char *elf_symbols_find(const struct elf_symbols *symbols, uint64_t offset);

// The function of each node of a profile, in the arena. -ENOMEM.
int function_names_make(const struct run_profile_data *profile, struct arena *arena, struct function_names *ret_names);
