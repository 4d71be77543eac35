#include "report/cap_report.h"

#include "base/util.h"

static const double J_PER_KWH = 3.6e6;

static void number(struct buf *out, double value)
{
	if (!isnan(value))
		buf_double(out, value);
}

// No header, as in De Feo's layout. Unknown values are empty.
static void one(const struct cap_tune_report *report, struct buf *out)
{
	for (size_t i = 0; report->has_result && i < report->result.n_limits; i++) {
		const struct tune_limit_result *row = &report->result.limits[i];
		if (row->is_added) // the layout has only the candidates
			continue;
		number(out, row->limit);
		buf_char(out, ',');
		number(out, row->steps);
		buf_char(out, ',');
		number(out, row->energy_j / J_PER_KWH);
		buf_char(out, ',');
		number(out, row->objective.value);
		buf_char(out, '\n');
	}
	buf_str(out, "Modeled Optimal Cap:,");
	number(out, report->chosen);
	buf_char(out, '\n');
}

void cap_tune_csv(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		one(&reports[i], out);
}
