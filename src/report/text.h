/* The text report's parts; report_text.c puts them together. */
#pragma once

#include "report/report.h"
#include "report/table.h"

struct text {
	const struct findings *findings;
	struct buf *out;
	const struct style *style;
	const char *target; // "this job"; NULL: "this program"
};

void text_headline(const struct text *text); // the command, and how it ended
void text_first(const struct text *text);    // time, energy, CPU, memory, GPUs, wattle itself
void text_ledger(const struct text *text);   // where the energy went
void text_domains(const struct text *text);
void text_gpus(const struct text *text);
void text_blocks(const struct text *text, size_t rows_max);
void text_metrics(const struct text *text); // the program's own
void text_warning(void *writer, const char *warning); // of struct warning_writer
struct warning_writer {
	const struct text *text;
	bool any;
};
void text_processes(const struct text *text);
void text_warnings(const struct text *text);

enum { TEXT_ROWS_MAX = 12 };                                 // of a table whose length the program decides
void text_and_more(const struct text *text, size_t n);       // of the rows that were left out
void text_title(const struct text *text, const char *title); // an empty line, then the title of a part
