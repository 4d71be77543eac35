/* Machine, command, labels and measurement overhead of a run or a job. */
#include "report/section/sections.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <string.h>

enum { COMMAND_CEILING = 1 << 22, VALUE_SHOWN = 4000, SEGMENTS_MAX = 20, FILES_MAX = 200 };

// Values of the JSON report, by key.
static const struct {
	const char *name, *key;
	unsigned int only;
} figures[] = {
	{"id", "job.id", 0},
	{"name", "job.name", OF_JOB},
	{"user", "job.user", OF_JOB},
	{"cluster", "job.cluster", OF_JOB},
	{"started by", "job.launcher", OF_JOB},
	{"step", "job.step", OF_JOB},
	{"world size", "job.world_size", OF_JOB},
	{"sample spacing", "job.read_every_s", OF_JOB},
	{"host", "run.host", OF_RUN},
	{"cores", "resource_usage.cpu_utilization.system_core_count", OF_RUN},
	{"expected cores", "resource_usage.cpu_utilization.n_expected_cores", OF_RUN},
	{"CPU time method", "cpu.method", OF_RUN},
	{"storage read", "memory.read_bytes", OF_RUN},
	{"storage written", "memory.written_bytes", OF_RUN},
	{"major faults", "memory.major_faults", OF_RUN},
	{"minor faults", "memory.minor_faults", OF_RUN},
	{"voluntary context switches", "cpu.voluntary_switches", OF_RUN},
	{"involuntary context switches", "cpu.involuntary_switches", OF_RUN},
	{"wattle wakeups", "self.wakeups", OF_RUN},
	{"carbon intensity, g CO2e/kWh", "energy.carbon_intensity_g_per_kwh", 0},
	{"carbon region", "energy.carbon_region", 0},
	{"carbon source", "energy.carbon_source", 0},
	{"run", "run.id", OF_RUN},
};

static void begin(struct buf *out, const char *name)
{
	buf_str(out, "<dt>");
	part_name(out, name);
	buf_str(out, "</dt><dd>");
}

static void end(struct buf *out)
{
	buf_str(out, "</dd>\n");
}

static void fact(struct buf *out, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	begin(out, name);
	part_name(out, value);
	end(out);
}

static void write_figures(const struct part *part)
{
	const struct object_at at = {part->job != NULL ? &job_report_type : &report_type, part->document, NULL, 0,
		NULL};
	struct buf value;
	buf_init(&value, COMMAND_CEILING);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		buf_clear(&value);
		if (!is_wanted(figures[i].only, ON_PAGE, part->job != NULL ? OF_JOB : OF_RUN) ||
			!row_print(&value, &at, figures[i].key, true))
			continue;
		buf_printf(part->out, "<dt>%s</dt><dd>%s", figures[i].name, value.data);
		end(part->out);
	}
	buf_finish(&value);
}

static void command(const struct part *part)
{
	struct buf words;
	buf_init(&words, COMMAND_CEILING);
	command_text(&words, report_segment(part->run));
	if (words.size > 0 && words.failed == 0) {
		buf_str(part->out, "<dt>command</dt><dd class=\"long\"><code><bdi>");
		size_t shown = words.size < VALUE_SHOWN ? words.size : VALUE_SHOWN;
		while (shown > 0 && ((unsigned char)words.data[shown] & 0xc0) == 0x80) // do not split a character
			shown--;
		words.data[shown] = '\0';
		html_text(part->out, words.data);
		buf_printf(part->out, "</bdi></code>%s", words.size > VALUE_SHOWN ? " …" : "");
		end(part->out);
	}
	buf_finish(&words);
}

static void labels(const struct part *part)
{
	for (size_t i = 0; i < part->document->n_labels; i++)
		if (strcmp(part->document->labels[i].name, "model_summary") != 0)
			fact(part->out, part->document->labels[i].name, part->document->labels[i].value);
}

static void devices(const struct part *part)
{
	for (size_t i = 0; i < part->run->n_devices; i++) {
		const struct run_device *device = &part->run->devices[i];
		if (device->device[0] == '\0')
			continue;
		begin(part->out, device->name);
		part_name(part->out, device->device);
		if (device->uuid[0] != '\0') {
			buf_str(part->out, " <span class=\"faint\">");
			part_name(part->out, device->uuid);
			buf_str(part->out, "</span>");
		}
		end(part->out);
	}
}

static void how_measured(const struct part *part)
{
	const char *mode = run_metadata(part->run, META_KEY_ATTRIBUTION);
	struct buf words;
	buf_init(&words, VALUE_SHOWN);
	if (!isnan(part->f->total_j))
		phrase_sources(&words, part->f);
	fact(part->out, "energy", words.data);
	buf_clear(&words);
	if (mode != NULL)
		buf_printf(&words, "%s: %s", mode,
			strcmp(mode, "active") == 0 ? "idle power is subtracted first"
						    : "all power, including idle power, is attributed by busy time");
	fact(part->out, "attribution", words.data);
	buf_finish(&words);
}

static void segments(const struct part *part)
{
	if (part->run->n_segments < 2)
		return;
	begin(part->out, "segments");
	for (size_t i = 0; i < part->run->n_segments && i < SEGMENTS_MAX; i++) {
		const struct run_segment *segment = &part->run->segments[i];
		buf_str(part->out, i > 0 ? ", " : "");
		human_time(part->out, (double)(segment->end_ns - segment->start_ns) / 1e9);
		buf_str(part->out, segment->complete ? "" : " (not complete)");
	}
	buf_str(part->out, part->run->n_segments > SEGMENTS_MAX ? " …" : "");
	end(part->out);
}

static void recordings(const struct part *part)
{
	const struct job_runs *runs = part->job->runs;
	struct buf *out = part->out;
	if (value_ok(part->job->n_nodes_expected))
		buf_printf(out, "<dt>requested nodes</dt><dd>%lld</dd>\n", (long long)part->job->n_nodes_expected);
	buf_printf(out, "<dt>recordings</dt><dd class=\"long\">%zu: ", runs->n);
	for (size_t i = 0; i < runs->n && i < FILES_MAX; i++) {
		buf_str(out, i > 0 ? ", " : "");
		const char *where = runs->runs[i].where, *slash = where != NULL ? strrchr(where, '/') : NULL;
		part_name(out, slash != NULL ? slash + 1 : where); // file names suffice: all are in one folder
	}
	buf_str(out, runs->n > FILES_MAX ? " …" : "");
	end(out);
	for (size_t i = 0; i < runs->n_problems; i++)
		fact(out, "unreadable", runs->problems[i]);
}

void section_about(const struct part *part)
{
	static void (*const of_run[])(const struct part *) = {command, labels, devices, how_measured, segments};
	section_begin(part, "about", part->job != NULL ? "About this job" : "About this run");
	buf_str(part->out, "<dl class=\"facts\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(of_run) && part->job == NULL; i++)
		of_run[i](part);
	write_figures(part);
	if (part->job != NULL)
		recordings(part);
	else
		fact(part->out, "wattle", run_metadata(part->run, "wattle_version"));
	buf_str(part->out, "</dl>\n");
	section_end(part);
}
