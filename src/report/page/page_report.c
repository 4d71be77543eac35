/* The page of one run. */
#include "report/page/page.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/page/part.h"
#include "report/parts.h"

enum { TITLE_CEILING = 1 << 22, TITLE_SHOWN = 80 };

// What a browser's tab says: the label, else the command.
static void title(const struct run *run, struct buf *out)
{
	const char *label = run_fact(run, FACT_LABEL);
	struct buf command;
	buf_init(&command, TITLE_CEILING);
	command_text(&command, report_segment(run));
	const char *text = label != NULL && label[0] != '\0' ? label : command.size > 0 ? command.data : "a run";
	size_t size = strlen(text), cut = size < TITLE_SHOWN ? size : TITLE_SHOWN;
	while (cut < size && cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	buf_add(out, text, cut);
	buf_str(out, cut < size ? "… · wattle" : " · wattle");
	buf_finish(&command);
}

void page_report(const struct charts *charts, struct buf *out)
{
	static void (*const parts[])(const struct part *part) = {section_head, section_ledger, section_time,
		section_blocks, section_flame, section_layers, section_tune, section_domains, section_gpus,
		section_metrics, section_processes, section_about};
	const struct part part = {.out = out, .charts = charts, .f = charts->findings, .run = charts->findings->run};
	struct buf name;
	buf_init(&name, TITLE_CEILING);
	title(part.run, &name);
	page_begin(out, name.data, PAGE_SCRIPT_REPORT, false);
	buf_finish(&name);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i](&part);
	page_end(out, PAGE_SCRIPT_REPORT);
}
