#include "report/fields/document.h"

#include "analysis/metadata_keys.h"
#include "base/fields.h"
#include "base/util.h"
#include "report/documents.h"
#include "report/format_helpers.h"
#include "report/phrases.h"
#include "report/report.h"

#include <errno.h>

enum { COMMAND_CEILING = 1 << 22 }; // the kernel limits command lines to 2 MB

const struct document *document_of(const struct object_at *at)
{
	return object_document(at);
}

const struct findings *findings_of(const struct object_at *at)
{
	return document_of(at)->findings;
}

bool is_of_job(const struct object_at *at)
{
	return document_of(at)->job != NULL;
}

const char *document_metadata(const struct object_at *at, struct buf *scratch)
{
	return run_metadata(document_of(at)->run, at->field->argument);
}

int64_t document_metadata_number(const struct object_at *at)
{
	return run_metadata_i64(document_of(at)->run, at->field->argument);
}

/* ---- the command ---- */

static int add_command(struct document *document)
{
	const struct run_segment *segment = report_segment(document->run);
	struct buf words;
	int r = 0;
	buf_init(&words, COMMAND_CEILING);
	if (segment != NULL && segment->command_json != NULL && command_quoted(segment->command_json, &words) == 0) {
		size_t n = 0;
		for (const char *at = words.data; at < words.data + words.size; at += strlen(at) + 1)
			n++;
		const char **command = arena_alloc(document->arena, n, sizeof(*command));
		for (const char *at = words.data; command != NULL && at < words.data + words.size; at += strlen(at) + 1)
			r |= (command[document->n_command++] = arena_text(document->arena, at)) == NULL;
		document->command = command;
		r |= command == NULL && n > 0;
	}
	buf_finish(&words);
	return r != 0 ? -ENOMEM : 0;
}

/* ---- labels ---- */

// Each key appears once: --label takes precedence over --meta.
static int add_labels(struct document *document)
{
	const struct run *run = document->run;
	const size_t prefix = strlen(META_KEY_META_PREFIX);
	const char *label = run_metadata(run, META_KEY_LABEL);
	struct document_label *labels = arena_alloc(document->arena, run->n_metadata + 1, sizeof(*labels));
	if (labels == NULL)
		return -ENOMEM;
	if (label != NULL)
		labels[document->n_labels++] = (struct document_label){"label", label};
	for (size_t i = 0; i < run->n_metadata; i++) {
		const char *key = run->facts[i].key;
		if (strncmp(key, META_KEY_META_PREFIX, prefix) != 0 ||
			(label != NULL && strcmp(key + prefix, "label") == 0))
			continue;
		labels[document->n_labels++] = (struct document_label){key + prefix, run->facts[i].value};
	}
	document->labels = labels;
	return 0;
}

/* ---- warnings ---- */

struct text_list {
	struct document *document;
	const char **texts; // NULL: count only
	size_t n;
	bool failed;
};

static void add_text(void *data, const char *text)
{
	struct text_list *list = data;
	if (list->texts != NULL)
		list->failed |= (list->texts[list->n] = arena_text(list->document->arena, text)) == NULL;
	list->n++;
}

static void write_all(struct text_list *list)
{
	const struct job_findings *job = list->document->job;
	for (size_t i = 0; job != NULL && i < job->n_warnings; i++)
		add_text(list, job->warnings[i]);
	if (job != NULL)
		report_warnings_of_totals(&job->total, add_text, list);
	else
		report_warnings(list->document->findings, add_text, list);
}

static int add_warnings(struct document *document)
{
	struct text_list count = {.document = document}, list = {.document = document};
	write_all(&count);
	list.texts = arena_alloc(document->arena, count.n + 1, sizeof(*list.texts));
	if (list.texts == NULL)
		return -ENOMEM;
	write_all(&list);
	document->warnings = list.texts;
	document->n_warnings = list.n;
	return list.failed ? -ENOMEM : 0;
}

/* ---- domains and GPUs of a job ---- */

// Indices sorted by node; *ret_begins, if requested, has n_nodes + 1 entries.
static int by_node(struct document *document, const size_t *node_of, size_t n, const size_t **ret_order,
	const size_t **ret_begins)
{
	size_t n_nodes = document->job->n_nodes;
	size_t *order = arena_alloc(document->arena, n + 1, sizeof(*order));
	size_t *begins = arena_alloc(document->arena, n_nodes + 2, sizeof(*begins));
	if (order == NULL || begins == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		begins[node_of[i] + 2]++;
	for (size_t k = 2; k < n_nodes + 2; k++)
		begins[k] += begins[k - 1];
	for (size_t i = 0; i < n; i++)
		order[begins[node_of[i] + 1]++] = i;
	*ret_order = order;
	if (ret_begins != NULL)
		*ret_begins = begins;
	return 0;
}

static int add_names(struct document *document)
{
	const struct findings *f = document->findings;
	size_t *names = arena_alloc(document->arena, f->n_domains + 1, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_domains; i++) {
		size_t k = 0;
		while (k < document->n_names &&
			strcmp(f->domains[names[k]].device->name, f->domains[i].device->name) != 0)
			k++;
		if (k == document->n_names)
			names[document->n_names++] = i;
	}
	document->names = names;
	return 0;
}

static int add_nodes(struct document *document)
{
	const struct job_findings *job = document->job;
	if (job == NULL)
		return 0;
	int r = by_node(document, job->domain_node, job->total.n_domains, &document->domains, &document->node_domains);
	return r < 0 ? r : by_node(document, job->gpu_node, job->total.n_gpus, &document->gpus, NULL);
}

static int64_t start_wall_ns(const struct document *document)
{
	const struct run *run = document->run;
	if (document->job != NULL)
		return document->job->start_wall_ns;
	return run->n_segments > 0 ? run->segments[0].wall_start_ns : VALUE_MISSING;
}

int document_make(const struct findings *findings, const struct job_findings *job, struct document *ret_document)
{
	int (*const add[])(struct document *) = {add_command, add_labels, add_warnings, add_names, add_nodes};
	int r = 0;
	*ret_document = (struct document){
		.findings = job != NULL ? &job->total : findings,
		.job = job,
		.arena = arena_new(),
	};
	ret_document->run = ret_document->findings->run;
	ret_document->start_wall_ns = start_wall_ns(ret_document);
	if (ret_document->arena == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(add) && r == 0; i++)
		r = add[i](ret_document);
	if (r < 0)
		document_finish(ret_document);
	return r;
}

void document_finish(struct document *document)
{
	arena_free(document->arena);
	*document = (struct document){0};
}

/* ---- JSON output ---- */

static void write_document(const struct findings *findings, const struct job_findings *job,
	const struct object_type *type, struct buf *out)
{
	struct document document;
	int r = document_make(findings, job, &document);
	if (r < 0) {
		out->failed = r;
		return;
	}
	document_json(out, type, &document, true);
	document_finish(&document);
}

void report_json(const struct findings *findings, struct buf *out)
{
	write_document(findings, NULL, &report_type, out);
}

void job_report_json(const struct job_findings *job, struct buf *out)
{
	write_document(NULL, job, &job_report_type, out);
}

void blocks_document(const struct findings *findings, struct buf *out)
{
	write_document(findings, NULL, &blocks_document_type, out);
}
