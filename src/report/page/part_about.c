/* The machine, the command, labels; what the meter cost; what happened meanwhile. */
#include "report/page/part.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/html.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { EVENTS_MAX = 200, COMMAND_CEILING = 1 << 22, VALUE_SHOWN = 4000 };

static void begin(struct buf *out, const char *name)
{
	buf_printf(out, "<dt>%s</dt><dd>", name);
}

static void end(struct buf *out)
{
	buf_str(out, "</dd>\n");
}

static void text_fact(const struct part *part, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	begin(part->out, name);
	part_name(part->out, value);
	end(part->out);
}

static void command(const struct part *part)
{
	struct buf words;
	buf_init(&words, COMMAND_CEILING);
	command_text(&words, report_segment(part->run));
	if (words.size > 0 && words.failed == 0) {
		buf_str(part->out, "<dt>command</dt><dd class=\"long\"><code><bdi>");
		size_t shown = words.size < VALUE_SHOWN ? words.size : VALUE_SHOWN;
		while (shown > 0 && ((unsigned char)words.data[shown] & 0xc0) == 0x80) // not within a character
			shown--;
		words.data[shown] = '\0';
		html_text(part->out, words.data);
		buf_printf(part->out, "</bdi></code>%s", words.size > VALUE_SHOWN ? " …" : "");
		end(part->out);
	}
	buf_finish(&words);
}

static void how_measured(const struct part *part)
{
	const struct findings *f = part->f;
	const char *mode = run_fact(part->run, FACT_ATTRIBUTION);
	if (!isnan(f->total_j)) {
		struct buf sources;
		buf_init(&sources, VALUE_SHOWN);
		words_sources(&sources, f);
		begin(part->out, "energy");
		html_text(part->out, sources.data);
		end(part->out);
		buf_finish(&sources);
	}
	if (mode != NULL) {
		begin(part->out, "attribution");
		html_text(part->out, mode);
		buf_str(part->out,
			strcmp(mode, "active") == 0 ? ": idle power is taken off first"
						    : ": busy time shares all power, idle power included");
		end(part->out);
	}
	if (f->cpu_method != NULL) {
		begin(part->out, "CPU time by");
		html_text(part->out, f->cpu_method);
		end(part->out);
	}
}

static void machine(const struct part *part)
{
	const struct findings *f = part->f;
	text_fact(part, "host", run_fact(part->run, FACT_HOST));
	if (value_ok(f->usage.system_core_count)) {
		begin(part->out, "cores");
		buf_i64(part->out, f->usage.system_core_count);
		if (value_ok(f->usage.expected_cores) && f->usage.expected_cores != f->usage.system_core_count)
			buf_printf(part->out, ", %lld expected to be used", (long long)f->usage.expected_cores);
		end(part->out);
	}
	if (isfinite(f->usage.ram_capacity_bytes)) {
		begin(part->out, "memory");
		human_bytes(part->out, f->usage.ram_capacity_bytes);
		end(part->out);
	}
	for (size_t i = 0; i < part->run->n_devices; i++) {
		const struct run_device *device = &part->run->devices[i];
		if (device->device[0] == '\0')
			continue;
		buf_str(part->out, "<dt>");
		part_name(part->out, device->name);
		buf_str(part->out, "</dt><dd>");
		part_name(part->out, device->device);
		if (device->uuid[0] != '\0') {
			buf_str(part->out, " <span class=\"faint\">");
			part_name(part->out, device->uuid);
			buf_str(part->out, "</span>");
		}
		end(part->out);
	}
}

static void labels(const struct part *part)
{
	size_t prefix = strlen(FACT_META_PREFIX);
	text_fact(part, "label", run_fact(part->run, FACT_LABEL));
	for (size_t i = 0; i < part->run->n_facts; i++) {
		const struct run_fact *fact = &part->run->facts[i];
		if (strncmp(fact->key, FACT_META_PREFIX, prefix) != 0 ||
			strcmp(fact->key + prefix, "model_summary") == 0)
			continue;
		buf_str(part->out, "<dt>");
		part_name(part->out, fact->key + prefix);
		buf_str(part->out, "</dt><dd>");
		part_name(part->out, fact->value);
		end(part->out);
	}
}

static void self(const struct part *part)
{
	const struct findings *f = part->f;
	struct buf *out = part->out;
	begin(out, "what the meter cost");
	human_time(out, f->self_cpu_s);
	buf_str(out, " CPU");
	if (f->self_cpu_percent <= 100) {
		buf_str(out, " (");
		human_number(out, f->self_cpu_percent, 2);
		buf_str(out, " % of one core)");
	}
	if (value_ok(f->self_max_rss_bytes)) {
		buf_str(out, ", ");
		human_bytes(out, (double)f->self_max_rss_bytes);
	}
	if (isfinite(f->self_energy_j)) {
		buf_str(out, ", ");
		human_energy(out, f->self_energy_j);
	}
	if (value_ok(f->self_wakeups))
		buf_printf(out, ", woke %lld times", (long long)f->self_wakeups);
	end(out);
}

static void io(const struct part *part)
{
	const struct findings *f = part->f;
	if (value_ok(f->read_bytes) || value_ok(f->written_bytes)) {
		begin(part->out, "storage");
		human_bytes(part->out, value_to_double(f->read_bytes, 1));
		buf_str(part->out, " read, ");
		human_bytes(part->out, value_to_double(f->written_bytes, 1));
		buf_str(part->out, " written");
		end(part->out);
	}
	if (value_ok(f->major_faults)) {
		begin(part->out, "page faults");
		buf_printf(part->out, "%lld from storage", (long long)f->major_faults);
		if (value_ok(f->minor_faults))
			buf_printf(part->out, ", %lld others", (long long)f->minor_faults);
		end(part->out);
	}
	if (value_ok(f->voluntary_switches) && value_ok(f->involuntary_switches)) {
		begin(part->out, "context switches");
		buf_printf(part->out, "%lld to wait, %lld forced", (long long)f->voluntary_switches,
			(long long)f->involuntary_switches);
		end(part->out);
	}
}

static void segments(const struct part *part)
{
	if (part->run->n_segments < 2)
		return;
	begin(part->out, "segments");
	for (size_t i = 0; i < part->run->n_segments && i < 20; i++) {
		const struct run_segment *segment = &part->run->segments[i];
		buf_str(part->out, i > 0 ? ", " : "");
		human_time(part->out, (double)(segment->end_ns - segment->start_ns) / 1e9);
		buf_str(part->out, segment->complete ? "" : " (not complete)");
	}
	buf_str(part->out, part->run->n_segments > 20 ? " …" : "");
	end(part->out);
}

static void events(const struct part *part)
{
	static const struct part_column columns[] = {{"at"}, {"what", "text"}, {"", "name"}};
	const struct run *run = part->run;
	size_t shown = 0, all = 0;
	if (run->n_events == 0)
		return;
	buf_printf(part->out,
		"<p class=\"faint small on-paper\">%zu event%s, which the page itself has.</p>\n<section class=\"no-print\">\n",
		run->n_events, run->n_events == 1 ? "" : "s");
	part_title(part, "events", "What happened meanwhile");
	part_table_begin(part, "events-table", NULL, columns, ARRAY_SIZE(columns), true);
	for (size_t i = 0; i < run->n_events; i++) {
		all++;
		if (shown == EVENTS_MAX)
			continue;
		shown++;
		buf_str(part->out, "<tr>");
		part_cell(part->out, chart_axis_s(&part->charts->axis, run->events[i].t_ns), human_time);
		buf_str(part->out, "<td class=\"text\">");
		html_text(part->out, run->events[i].kind_name);
		buf_str(part->out, "</td><td class=\"name\">");
		if (run->events[i].text != NULL)
			part_name(part->out, run->events[i].text);
		buf_str(part->out, "</td></tr>\n");
	}
	part_table_end(part);
	if (all > shown)
		buf_printf(part->out, "<p class=\"faint small\">… and %zu more in the run file, table event.</p>\n",
			all - shown);
	buf_str(part->out, "</section>\n");
}

void section_about(const struct part *part)
{
	static void (*const facts[])(
		const struct part *) = {command, labels, machine, how_measured, segments, io, self};
	buf_str(part->out, "<section>\n");
	part_title(part, "about", "About this run");
	buf_str(part->out, "<dl class=\"facts\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		facts[i](part);
	text_fact(part, "run", run_fact(part->run, FACT_RUN_ID));
	text_fact(part, "wattle", run_fact(part->run, "wattle_version"));
	buf_str(part->out, "</dl>\n</section>\n");
	events(part);
}
