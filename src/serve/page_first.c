/* The top of the live page. */
#include "serve/view.h"

#include "base/util.h"
#include "report/format_helpers.h"
#include "report/html.h"
#include "report/report.h"
#include "report/section/html_section.h"

enum { CLOCK_CEILING = 64 };

/* ---- heading ---- */

// "12:00:00" in local time, with the exact time in machine-readable form.
static void clock_time(struct buf *out, int64_t wall_ns)
{
	struct buf text;
	buf_init(&text, CLOCK_CEILING);
	rfc3339(&text, wall_ns);
	if (!text.failed && text.size > 19)
		buf_printf(out, "<time datetime=\"%s\">%.8s</time>", text.data, text.data + 11);
	buf_finish(&text);
}

static void note(struct buf *out, const char *text)
{
	buf_str(out, "<li>");
	html_text(out, text);
	buf_str(out, "</li>\n");
}

static void notes(const struct view *view, struct buf *out)
{
	const struct monitor_sample *now = view->now;
	buf_str(out, "<ul class=\"notes\">\n");
	if (now->problem != NULL)
		note(out, now->problem);
	if (now->target_is_gone)
		note(out, "The process given by --pid has ended.");
	for (size_t i = 0; i < now->n_domains; i++) {
		const struct domain *domain = now->domains[i].domain;
		if (domain->note[0] == '\0')
			continue;
		buf_str(out, "<li>");
		part_name(out, domain->name);
		buf_str(out, ": ");
		html_text(out, domain->note);
		buf_str(out, "</li>\n");
	}
	buf_str(out, "</ul>\n");
}

// "1 s", "250 ms": a configured value, so without decimals.
static void interval(struct buf *out, int64_t interval_ns)
{
	int64_t ms = interval_ns / NS_PER_MS;
	if (ms % 1000 == 0)
		buf_printf(out, "%lld s", (long long)(ms / 1000));
	else
		buf_printf(out, "%lld ms", (long long)ms);
}

void page_heading(const struct view *view, struct buf *out)
{
	buf_str(out, "<h1>");
	part_name(out, view->host[0] != '\0' ? view->host : "this machine");
	buf_str(out,
		"</h1>\n<p class=\"faint\"><span id=\"state\" class=\"beat\" role=\"status\">Live</span> · as of ");
	clock_time(out, view->now->wall_ns);
	buf_str(out, " · sampled every ");
	interval(out, view->interval_ns);
	buf_str(out, " · running for ");
	human_time(out, (double)view->up_ns / 1e9);
	buf_str(out, "</p>\n");
	notes(view, out);
}

/* ---- headline figures ---- */

static void begin_tile(struct buf *out, const char *title)
{
	buf_printf(out, "<div class=\"tile\"><dt>%s</dt><dd class=\"figure\">", title);
}

static void begin_remark(struct buf *out)
{
	buf_str(out, "</dd><dd class=\"remark\">");
}

static void end_tile(struct buf *out)
{
	buf_str(out, "</dd></div>\n");
}

static void power_tiles(const struct view *view, struct buf *out)
{
	const struct monitor_sample *now = view->now;
	begin_tile(out, "Power now");
	human_power(out, now->total_w);
	begin_remark(out);
	if (now->problem == NULL)
		part_tag(out, now->provenance);
	else
		buf_str(out, "no sensor can be read");
	end_tile(out);
	begin_tile(out, "Energy");
	human_energy(out, value_to_double(now->total_energy_uj, 1e-6));
	begin_remark(out);
	if (now->problem == NULL) {
		part_tag(out, now->provenance);
		buf_char(out, ' ');
	}
	buf_str(out, "in ");
	human_time(out, (double)view->up_ns / 1e9);
	end_tile(out);
	if (!view->has_target)
		return;
	begin_tile(out, "The target");
	human_power(out, now->sum.target_w);
	begin_remark(out);
	buf_str(out, now->target_is_gone ? "has ended" : "of the power, attributed");
	end_tile(out);
}

static void machine_tiles(const struct view *view, struct buf *out)
{
	const struct monitor_sample *now = view->now;
	begin_tile(out, "CPU");
	if (isfinite(now->busy_cores))
		buf_fixed(out, now->busy_cores, 1);
	else
		buf_str(out, "n/a");
	begin_remark(out);
	if (value_ok(now->cores))
		buf_printf(out, "of %lld %s busy", (long long)now->cores, now->cores == 1 ? "core" : "cores");
	else
		buf_str(out, "cores busy");
	end_tile(out);
	begin_tile(out, "Memory");
	human_bytes(out, value_to_double(now->memory_used_bytes, 1));
	begin_remark(out);
	buf_str(out, "of ");
	human_bytes(out, value_to_double(now->memory_total_bytes, 1));
	end_tile(out);
}

struct gpus {
	size_t n, n_known;
	double power_w, utilization_percent;
};

static struct gpus sum_gpus(const struct monitor_sample *now)
{
	struct gpus gpus = {0};
	for (size_t i = 0; i < now->n_domains; i++) {
		const struct monitor_domain *domain = &now->domains[i];
		if (domain->domain->kind != DOMAIN_GPU)
			continue;
		gpus.n++;
		gpus.power_w += domain->power_w; // one unknown value makes the sum unknown
		if (isnan(domain->utilization_percent))
			continue;
		gpus.utilization_percent += domain->utilization_percent;
		gpus.n_known++;
	}
	return gpus;
}

static void gpu_tile(const struct view *view, struct buf *out)
{
	struct gpus gpus = sum_gpus(view->now);
	if (gpus.n == 0)
		return;
	begin_tile(out, gpus.n == 1 ? "GPU" : "GPUs");
	human_power(out, gpus.power_w);
	begin_remark(out);
	if (gpus.n > 1)
		buf_printf(out, "%zu, ", gpus.n);
	if (gpus.n_known > 0)
		human_percent(out, gpus.utilization_percent / (double)gpus.n_known);
	else
		buf_str(out, "use unknown");
	if (gpus.n_known > 0)
		buf_str(out, gpus.n > 1 ? " busy on average" : " busy");
	end_tile(out);
}

void page_tiles(const struct view *view, struct buf *out)
{
	buf_str(out, "<dl class=\"tiles\">\n");
	power_tiles(view, out);
	gpu_tile(view, out);
	machine_tiles(view, out);
	buf_str(out, "</dl>\n");
}

/* ---- power by consumer ---- */

struct share {
	const char *css, *name;
	double power_w;
	bool is_optional; // omitted if unknown
};

static void bar(const struct share *shares, size_t n, double sum_w, bool is_estimated, struct buf *out)
{
	double x = 0;
	buf_printf(out, "<div class=\"%s\">", is_estimated ? "ledger-frame is-estimated" : "ledger-frame");
	buf_str(out,
		"<svg class=\"ledger-bar\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
	for (size_t i = 0; i < n; i++) {
		double width = shares[i].power_w > 0 ? shares[i].power_w / sum_w * 1000 : 0;
		buf_printf(out, "<rect class=\"c-%s\" height=\"20\" x=\"", shares[i].css);
		buf_fixed(out, x, 1);
		buf_str(out, "\" width=\"");
		buf_fixed(out, width, 1);
		buf_str(out, "\"/>");
		x += width;
	}
	buf_str(out, "</svg></div>\n");
}

static void legend(const struct share *shares, size_t n, double sum_w, struct buf *out)
{
	buf_str(out, "<ul class=\"ledger-legend\">\n");
	for (size_t i = 0; i < n; i++) {
		if (isnan(shares[i].power_w) && shares[i].is_optional)
			continue;
		buf_printf(out, "<li><span class=\"swatch c-%s\"></span>%s <b>", shares[i].css, shares[i].name);
		human_power(out, shares[i].power_w);
		buf_str(out, "</b>");
		if (!isnan(shares[i].power_w)) {
			buf_str(out, " <span class=\"faint\">");
			part_percent(out, shares[i].power_w / sum_w * 100);
			buf_str(out, "</span>");
		}
		buf_str(out, "</li>\n");
	}
	buf_str(out, "</ul>\n");
}

void page_ledger(const struct view *view, struct buf *out)
{
	const struct monitor_sum *sum = &view->now->sum;
	const struct share shares[] = {
		{"target", "the target", view->has_target ? sum->target_w : (double)NAN, .is_optional = true},
		{"others", view->has_target ? "other programs" : "programs", sum->others_w},
		{"wattle", "wattle itself", sum->own_w},
		{"idle", "idle", sum->idle_w},
		{"unattributed", "not attributed to any program", sum->unattributed_w},
	};
	double sum_w = 0;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		if (shares[i].power_w > 0)
			sum_w += shares[i].power_w;
	if (!(sum_w > 0))
		return;
	bool is_estimated = view->now->provenance == PROVENANCE_ESTIMATED;
	buf_str(out, "<h2 id=\"ledger\">Power by owner");
	if (is_estimated) {
		buf_char(out, ' ');
		part_tag(out, view->now->provenance);
	}
	buf_str(out, "</h2>\n");
	bar(shares, ARRAY_SIZE(shares), sum_w, is_estimated, out);
	legend(shares, ARRAY_SIZE(shares), sum_w, out);
}
